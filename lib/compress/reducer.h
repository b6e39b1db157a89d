// Averages gradients over a group: plainly, or compressed by some scheme.
//
// One flat fp32 buffer a call, in place: on return it holds the mean over the
// communicator's members, or the scheme's estimate of it, with the same bits on
// every member. A reducer belongs to one worker; a scheme may keep residuals
// from call to call.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "compress/reducer_options.h"
#include "state/archive.h"

namespace abtrain::compress {

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void reduce(
      at::Tensor flat_gradients,
      comm::Communicator& communicator,
      comm::Purpose purpose) = 0;
  // Bytes that member `rank` of `members` sends in one call: for `plan`.
  virtual std::int64_t bytes(std::int64_t numel, int members, int rank)
      const = 0;
  // For reports: "plain bf16".
  virtual std::string name() const = 0;
  // What it keeps from call to call.
  virtual void archive(state::Archive&, const std::string& /*prefix*/) {}
  // Forgets residuals: called before the parameters or the group change.
  virtual void reset() {}
};

// Error(Config) for a name or dtype that is not known.
std::unique_ptr<Reducer> make_reducer(const ReducerOptions& options);

}  // namespace abtrain::compress
