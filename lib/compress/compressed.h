// What the compressing schemes have in common: which tensors they compress, the
// residual of each (error feedback), the plain way of the rest.
//
// A bucket's tensors of at least `min_numel` numbers lie one after another in a
// run of their own, u = gradient + residual of the last step. A scheme's
// exchange() turns u into an estimate of the mean of all members' u and leaves
// in u what this member did not contribute to it, the residual of the next
// step: never u less the common estimate, whose error would then be counted n
// times and whose sum over steps has no bound.
#pragma once

#include <optional>

#include "compress/average.h"
#include "compress/reducer.h"

namespace abtrain::compress {

// A worker's own stream of roundings of a bucket, for what is not the same on
// all members.
inline std::uint32_t rounding_stream(
    const comm::Communicator& group,
    std::size_t bucket) {
  return static_cast<std::uint32_t>(group.rank()) << 16 ^
         static_cast<std::uint32_t>(bucket);
}

class CompressedReducer : public Reducer {
 public:
  CompressedReducer(const ReducerOptions& options, std::uint64_t seed)
      : options_(options),
        keeps_residual_(has_error_feedback(options)),
        seed_(seed) {}

  void bind(std::vector<Bucket> buckets) override;
  Rounds reduce(Job job) override;
  std::int64_t bytes(
      std::size_t bucket,
      int members,
      int rank,
      std::int64_t turn) const override;
  std::int64_t payload_bits(std::size_t bucket, int members, std::int64_t turn)
      const override;
  std::string name() const override {
    return options_.name;
  }
  // "residual.<bucket>" and what the scheme adds by archive_more().
  void archive(state::Archive& archive, const std::string& prefix) override;
  std::vector<at::Tensor> residual_squares() const override;

 protected:
  // The compressed tensors of one bucket.
  struct Packed {
    std::size_t bucket = 0;
    std::vector<Slot> slots;    // offsets are those in the run
    std::int64_t numel = 0;     // of the run
    std::vector<Range> ranges;  // of the gradient buffer, in the run's order
    std::vector<Slot> rest;     // sent plainly, where they lie in the buffer
  };
  struct Task {
    const Packed* packed = nullptr;
    at::Tensor u;         // 1-D fp32, numel; holds the new residual at the end
    at::Tensor estimate;  // the same shape; to be written
    comm::Communicator* group = nullptr;  // of two members or more
    comm::Purpose purpose = comm::Purpose::Gradient;
    std::int64_t step = 0;
    std::int64_t turn = 0;
  };

  // Makes u in `residual`: the gradients are added to it, or without error
  // feedback replace it. Just before exchange(), for a scheme that gathers
  // something of u in the same pass.
  virtual void accumulate(
      const Packed& packed,
      const at::Tensor& residual,
      const at::Tensor& gradients);
  virtual Rounds exchange(Task task) = 0;
  // Bytes that member `rank` sends in exchange(), and their payload.
  virtual std::int64_t
  exchange_bytes(const Packed& packed, int members, int rank) const = 0;
  virtual std::int64_t exchange_bits(const Packed& packed, int members)
      const = 0;
  // What it sends beside that in some turns only.
  virtual std::int64_t extra_bytes(
      const Packed&,
      int /*members*/,
      int /*rank*/,
      std::int64_t /*turn*/) const {
    return 0;
  }
  virtual std::int64_t
  extra_bits(const Packed&, int /*members*/, std::int64_t /*turn*/) const {
    return 0;
  }
  // Whether the scheme takes this tensor.
  virtual bool compresses(const Slot& slot) const {
    return slot.numel() >= min_numel(options_);
  }
  // Called by bind(): forget what is kept of buckets.
  virtual void forget() {}
  // What a scheme keeps of a bucket beside the residual.
  virtual void
  archive_more(state::Archive&, const std::string& /*prefix*/, const Packed&) {}
  at::ScalarType plain_dtype() const {
    return compress::plain_dtype(options_);
  }

  // Whether, without a residual, exchange() may find u where it writes the
  // estimate: it has read all of u before it writes.
  virtual bool works_in_place() const {
    return false;
  }

  const ReducerOptions options_;
  const bool keeps_residual_;
  const std::uint64_t seed_;

 private:
  struct State {
    Packed packed;
    at::Tensor residual;  // undefined until the first step
  };
  // The slots that go plainly in this turn.
  std::vector<Slot> plain_slots(const State& state, std::int64_t turn) const;

  std::vector<State> states_;
  std::vector<Bucket> buckets_;
};

}  // namespace abtrain::compress
