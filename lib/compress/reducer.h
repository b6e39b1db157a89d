// Averages gradients over a group, bucket by bucket: plainly, or compressed by
// some scheme (docs/methods.md has a page for each).
//
// A reducer belongs to one worker and one group. It works in place on a flat
// fp32 buffer: when a bucket's rounds are over, its slots hold the mean over
// the group's members, or the scheme's estimate of it, with the same bits on
// every member. A group of one sends nothing and changes nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compress/bucket.h"
#include "compress/reducer_options.h"
#include "compress/rounds.h"
#include "state/archive.h"

namespace abtrain::compress {

// Exchanges are counted from bind() on, those of the first `dense_steps` steps
// (in which all is sent plainly) left out: a method may exchange in some steps
// only. This stands for one of the dense ones.
constexpr std::int64_t kDense = -1;

class Reducer {
 public:
  // One bucket of one step.
  struct Job {
    std::size_t bucket = 0;
    at::Tensor gradients;  // the whole flat buffer
    comm::Communicator* group = nullptr;
    comm::Purpose purpose = comm::Purpose::Gradient;
    std::int64_t step = 0;  // of the run, from 0
    std::int64_t turn = 0;  // kDense, or how many such exchanges came before
  };

  virtual ~Reducer() = default;
  // The buckets that reduce() will be asked for; forgets what was kept of
  // others. Allocates nothing.
  virtual void bind(std::vector<Bucket> buckets) = 0;
  virtual Rounds reduce(Job job) = 0;
  // Bytes that member `rank` of `members` sends for a bucket in an exchange.
  virtual std::int64_t
  bytes(std::size_t bucket, int members, int rank, std::int64_t turn) const = 0;
  // Of which the payload P of its collectives, in bits: what one member has to
  // say, whatever the collective makes of it.
  virtual std::int64_t
  payload_bits(std::size_t bucket, int members, std::int64_t turn) const = 0;
  // Bytes and payload come back after so many turns.
  virtual std::int64_t period() const {
    return 1;
  }
  // For reports: "plain bf16".
  virtual std::string name() const = 0;
  // What it keeps from step to step, after bind().
  virtual void archive(state::Archive&, const std::string& /*prefix*/) {}
  // Sum of the squares of this worker's residuals, fp32 scalars; may be empty.
  virtual std::vector<at::Tensor> residual_squares() const {
    return {};
  }
};

// Error(Config) for a name or value that is not known. `seed` is the run's: of
// random signs and roundings.
std::unique_ptr<Reducer> make_reducer(
    const ReducerOptions& options,
    std::uint64_t seed);

}  // namespace abtrain::compress
