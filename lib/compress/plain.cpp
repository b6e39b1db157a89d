#include "compress/plain.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "base/error.h"
#include "compress/schemes.h"
#include "device/tensor_text.h"

namespace abtrain::compress {

namespace {

// Averages these ranges of a flat buffer as average() does.
Rounds average_ranges(
    at::Tensor buffer, std::vector<Range> ranges, comm::Communicator& group, comm::Purpose purpose,
    at::ScalarType wire) {
  if (group.size() == 1) {
    co_return;
  }
  if (wire == at::kFloat) {
    // In place, range by range: few, because a bucket's weights are adjacent, as are its biases.
    std::vector<comm::Pending> pending;
    for (const Range& range : ranges) {
      pending.push_back(group.all_reduce(range.of(buffer), comm::ReduceOp::Mean, purpose));
    }
    for (comm::Pending& each : pending) {
      co_yield std::move(each);
    }
    co_return;
  }
  const at::Tensor sent = at::empty({numel_of(ranges)}, buffer.options().dtype(wire));
  // For fp16, divides by n before the cast, so that a value up to n * 65504 stays finite.
  const bool before = wire == at::kHalf;
  const float scale = before ? 1.0f / static_cast<float>(group.size()) : 1.0f;
  pack(buffer, ranges, scale, sent);
  co_yield group.all_reduce(sent, before ? comm::ReduceOp::Sum : comm::ReduceOp::Mean, purpose);
  unpack(sent, ranges, buffer);
}

class Plain : public Reducer {
 public:
  Plain(const ReducerOptions& options, std::uint64_t /*seed*/) : wire_(plain_dtype(options)) {}

  void bind(std::vector<Bucket> buckets) override {
    buckets_ = std::move(buckets);
  }

  Rounds reduce(Job job) override {
    return average_ranges(
        job.gradients, buckets_[job.bucket].ranges, *job.group, job.purpose, wire_);
  }

  Volume volume(Member member, bool /*dense*/) const override {
    Volume volume;
    for (const Bucket& bucket : buckets_) {
      if (wire_ != at::kFloat) {
        volume = volume + member.all_reduce(bucket.numel(), 2);
        continue;
      }
      for (const Range& range : bucket.ranges) {
        volume = volume + member.all_reduce(range.size, 4);
      }
    }
    return volume;
  }

 private:
  const at::ScalarType wire_;
  std::vector<Bucket> buckets_;
};

}  // namespace

void average(
    const at::Tensor& flat, comm::Communicator& group, comm::Purpose purpose, at::ScalarType wire) {
  ABT_ASSERT(
      flat.dim() == 1 && flat.is_contiguous() && flat.scalar_type() == at::kFloat,
      "average: expected a flat fp32 tensor, got {}{}", c10::toString(flat.scalar_type()),
      flat.sizes());
  Rounds rounds = average_ranges(flat, {{0, flat.numel()}}, group, purpose, wire);
  while (rounds.resume()) {
    rounds.wait();
  }
}

extern const Scheme kPlain = {
    .name = "plain",
    .make = make<Plain>,
    .compresses = false,
    .dtype = at::kFloat,
};

}  // namespace abtrain::compress
