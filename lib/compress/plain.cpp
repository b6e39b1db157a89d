#include "compress/plain.h"

#include <ATen/ops/empty.h>

#include "comm/traffic.h"
#include "compress/average.h"

namespace abtrain::compress {

namespace {

class Plain : public Reducer {
 public:
  explicit Plain(const ReducerOptions& options)
      : dtype_(options.dtype == "auto" ? "fp32" : options.dtype),
        wire_(plain_dtype(options)) {}

  void bind(std::vector<Bucket> buckets) override {
    buckets_.clear();
    for (const Bucket& bucket : buckets) {
      buckets_.push_back({bucket.ranges(), bucket.numel()});
    }
  }

  Rounds reduce(Job job) override {
    comm::Communicator& group = *job.group;
    if (group.size() == 1) {
      co_return;
    }
    const Known& bucket = buckets_[job.bucket];
    if (wire_ == at::kFloat) {
      // In place; a bucket's weights are adjacent, and so are its biases.
      std::vector<comm::Pending> pending;
      for (const Range& range : bucket.ranges) {
        pending.push_back(group.all_reduce(
            job.gradients.narrow(0, range.begin, range.size),
            comm::ReduceOp::Mean,
            job.purpose));
      }
      for (comm::Pending& each : pending) {
        co_yield std::move(each);
      }
      co_return;
    }
    const at::Tensor wire =
        at::empty({bucket.numel}, job.gradients.options().dtype(wire_));
    // fp16 is divided before the cast: a value up to n * 65504 stays finite.
    const bool before = wire_ == at::kHalf;
    const float scale =
        before ? 1.0f / static_cast<float>(group.size()) : 1.0f;
    pack(job.gradients, bucket.ranges, scale, wire);
    co_yield group.all_reduce(
        wire,
        before ? comm::ReduceOp::Sum : comm::ReduceOp::Mean,
        job.purpose);
    unpack(wire, bucket.ranges, job.gradients);
  }

  std::int64_t bytes(
      std::size_t bucket, int members, int rank, std::int64_t) const override {
    if (wire_ != at::kFloat) {
      return comm::all_reduce_bytes(buckets_[bucket].numel, 2, members, rank);
    }
    std::int64_t total = 0;
    for (const Range& range : buckets_[bucket].ranges) {
      total += comm::all_reduce_bytes(range.size, 4, members, rank);
    }
    return total;
  }

  std::int64_t payload_bits(
      std::size_t bucket, int, std::int64_t) const override {
    return buckets_[bucket].numel *
        static_cast<std::int64_t>(8 * c10::elementSize(wire_));
  }

  std::string name() const override {
    return "plain " + dtype_;
  }

 private:
  struct Known {
    std::vector<Range> ranges;
    std::int64_t numel;
  };
  std::string dtype_;
  at::ScalarType wire_;
  std::vector<Known> buckets_;
};

}  // namespace

std::unique_ptr<Reducer> make_plain(const ReducerOptions& options) {
  return std::make_unique<Plain>(options);
}

}  // namespace abtrain::compress
