// The base class of the compressing schemes. It chooses the tensors to compress, keeps their
// residuals (error feedback), and sends all other tensors uncompressed.
//
// A bucket's tensors of at least `min_numel` elements are packed into one vector u = gradient +
// residual of the last step. A scheme's exchange() estimates the mean of all members' u, and leaves
// in u the part that this member did not send: the residual for the next step. The residual must
// not be u minus the common estimate: then all n members would feed back the estimate's error, and
// its sum over the steps would be unbounded.
//
// Tested with every scheme, by tests/compress/test_invariants.cpp.
#pragma once

#include <optional>

#include "compress/schemes.h"

namespace abtrain::compress {

// Numbers the random stream of a worker's roundings in a bucket; each worker has its own.
inline std::uint32_t rounding_stream(const comm::Communicator& group, std::size_t bucket) {
  return static_cast<std::uint32_t>(group.rank()) << 16 ^ static_cast<std::uint32_t>(bucket);
}

// The Scheme::check of schemes that need error feedback.
void check_needs_feedback(
    const ReducerOptions& options, const std::string& section, std::int64_t members,
    Conflicts& out);

class CompressedReducer : public Reducer {
 public:
  CompressedReducer(const ReducerOptions& options, std::uint64_t seed)
      : options_(options),
        plain_dtype_(plain_dtype(options)),
        keeps_residual_(has_error_feedback(options)),
        min_numel_(min_numel(options)),
        seed_(seed) {}

  void bind(std::vector<Bucket> buckets) override;
  Rounds reduce(Job job) override;
  Volume volume(Member member, bool dense) const override;
  // Saves or loads "residual.<bucket>" and the entries of archive_more().
  void archive(state::Archive& archive, const std::string& prefix) override;
  std::vector<at::Tensor> residual_squares() const override;

 protected:
  // The compressed tensors of one bucket.
  struct Packed : PackedSlots {
    std::size_t bucket;
  };
  // The compressed part of a job. The group has at least two members.
  struct Task : Job {
    const Packed* packed = nullptr;
    at::Tensor u;         // 1-D fp32, packed->numel; holds the new residual at the end
    at::Tensor estimate;  // output, same shape as u
  };

  // Computes u in `residual`: adds the gradients, or copies them if there is no error feedback.
  // Runs just before exchange(); a scheme may override it to gather statistics of u in the same
  // pass.
  virtual void accumulate(
      const Packed& packed, const at::Tensor& residual, const at::Tensor& gradients);
  virtual Rounds exchange(Task task) = 0;
  // Returns the volume that a member sends in exchange().
  virtual Volume exchanged(const Packed& packed, Member member) const = 0;
  // Whether the scheme compresses this tensor.
  virtual bool compresses(const Slot& slot) const {
    return slot.numel() >= min_numel_;
  }
  // Saves or loads the state that a scheme keeps per bucket besides the residual.
  virtual void archive_more(state::Archive&, const std::string& /*prefix*/, const Packed&) {}

  // Whether u and estimate may be the same tensor if no residual is kept. exchange() must then read
  // all of u before it writes the estimate.
  virtual bool works_in_place() const {
    return false;
  }

  const ReducerOptions options_;
  const at::ScalarType plain_dtype_;
  const bool keeps_residual_;
  const std::int64_t min_numel_;
  const std::uint64_t seed_;

 private:
  struct State {
    Packed packed;
    std::vector<Range> all;    // of the gradient buffer: sent uncompressed in dense steps
    std::vector<Range> rest;   // the same: sent uncompressed in other steps
    at::Tensor residual = {};  // undefined until the first step
  };

  std::vector<State> states_;  // one per bucket
};

}  // namespace abtrain::compress
