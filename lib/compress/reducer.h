// Averages gradients over a group, bucket by bucket, uncompressed or compressed by some scheme
// (docs/methods.md links a page for each).
//
// A reducer belongs to one worker and one group. It works in place on a flat fp32 buffer: when a
// bucket's rounds are done, its slots hold the mean over the group's members, or the scheme's
// estimate of it, bit-identical on all members. A group of one sends nothing and changes nothing.
//
// Tested with every scheme, by tests/compress/test_invariants.cpp.
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
#include "compress/volume.h"
#include "state/archive.h"

namespace abtrain::compress {

class Reducer {
 public:
  // One bucket of one step.
  struct Job {
    std::size_t bucket = 0;
    at::Tensor gradients;  // the whole flat buffer
    comm::Communicator* group = nullptr;
    comm::Purpose purpose = comm::Purpose::Gradient;
    std::int64_t step = 0;  // of the run, from 0
    bool dense = false;     // whether everything is sent uncompressed, as in the first steps
  };

  virtual ~Reducer() = default;
  // Sets the buckets for reduce(). Call it once: the state kept from step to step belongs to these
  // buckets. Allocates nothing.
  virtual void bind(std::vector<Bucket> buckets) = 0;
  virtual Rounds reduce(Job job) = 0;
  // Returns the volume that a member sends in one step, over all buckets.
  virtual Volume volume(Member member, bool dense) const = 0;
  // Saves or loads the state that is kept from step to step. Call it after bind().
  virtual void archive(state::Archive&, const std::string& /*prefix*/) {}
  // Returns the sums of squares of this worker's residuals (fp32 scalars); may be empty.
  virtual std::vector<at::Tensor> residual_squares() const {
    return {};
  }
};

}  // namespace abtrain::compress
