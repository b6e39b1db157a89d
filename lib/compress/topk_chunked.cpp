// topk-chunked: top-k by chunks of adjacent elements, the same on all workers (Han et al., arXiv
// 2407.01378, "TopKC"). The workers sum the squared norms of the chunks, choose the chunks with the
// largest sums, and all-reduce these chunks. No indices are sent, and no message grows with the
// number of workers.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "compress/compressed_reducer.h"
#include "ops/chunks.h"
#include "ops/scale_cast.h"
#include "ops/select_largest.h"

namespace abtrain::compress {

namespace {

// Elements per chunk.
std::int64_t chunk_of(const ReducerOptions& options) {
  return options.chunk.value_or(options.bits < 1 ? 128 : 64);
}

// Bits per element spent on the norms.
double norm_bits(std::int64_t chunk) {
  return 16.0 / static_cast<double>(chunk);
}

class TopkChunked : public CompressedReducer {
 public:
  TopkChunked(const ReducerOptions& options, std::uint64_t seed)
      : CompressedReducer(options, seed), chunk_(chunk_of(options)) {}

 protected:
  // Also computes the chunks' norms.
  void accumulate(
      const Packed& packed, const at::Tensor& residual, const at::Tensor& gradients) override {
    norms_ = at::empty({chunks(packed)}, residual.options());
    if (std::ranges::any_of(packed.ranges, [&](const Range& r) { return r.place % chunk_ != 0; })) {
      // Some chunk has elements from two ranges.
      CompressedReducer::accumulate(packed, residual, gradients);
      ops::add_with_norms(residual, residual, false, chunk_, norms_);
      return;
    }
    for (const Range& range : packed.ranges) {
      ops::add_with_norms(
          range.in(residual), range.of(gradients), keeps_residual_, chunk_,
          norms_.narrow(0, range.place / chunk_, ops::chunk_count(range.size, chunk_)));
    }
  }

  Rounds exchange(Task task) override {
    const std::int64_t count = chunks(*task.packed);
    const std::int64_t taken = chosen(*task.packed);
    const auto half = task.u.options().dtype(at::kHalf);
    // bf16, because squares of small gradients underflow in fp16.
    const at::Tensor norms = at::empty({count}, task.u.options().dtype(at::kBFloat16));
    ops::scale_cast(norms_, 1.0f, norms);
    norms_.reset();
    co_yield task.group->all_reduce(norms, comm::ReduceOp::Sum, task.purpose);

    const at::Tensor indices = ops::select_largest(norms, taken);
    const at::Tensor wire = at::empty({taken * chunk_}, half);
    ops::take_chunks(task.u, indices, chunk_, task.group->size(), wire);
    co_yield task.group->all_reduce(wire, comm::ReduceOp::Sum, task.purpose);

    task.estimate.zero_();
    ops::put_chunks(wire, indices, chunk_, task.estimate, ops::Put::Set);
  }

  Volume exchanged(const Packed& packed, Member member) const override {
    return member.all_reduce(chunks(packed), 2) + member.all_reduce(chosen(packed) * chunk_, 2);
  }

 private:
  // The number of chunks of u; the last one is sent padded with zeros.
  std::int64_t chunks(const Packed& packed) const {
    return ops::chunk_count(packed.numel, chunk_);
  }
  // The number of chunks sent, from the bits that the norms leave.
  std::int64_t chosen(const Packed& packed) const {
    const double j = std::floor(
        (options_.bits - norm_bits(chunk_)) * static_cast<double>(packed.numel) /
        (16 * static_cast<double>(chunk_)));
    return static_cast<std::int64_t>(std::clamp(j, 1.0, static_cast<double>(chunks(packed))));
  }

  const std::int64_t chunk_;
  at::Tensor norms_;  // from accumulate() to exchange()
};

void check_chunked_bits(
    const ReducerOptions& options, const std::string& section, std::int64_t /*members*/,
    Conflicts& out) {
  const std::int64_t chunk = chunk_of(options);
  conflict_if(
      options.bits <= norm_bits(chunk), out, {section + ".bits", section + ".name"},
      "the norms of chunks of {} alone take {} bits per element; expected more, got {}", chunk,
      norm_bits(chunk), options.bits);
}

}  // namespace

extern const Scheme kTopkChunked = {
    .name = "topk-chunked",
    .make = make<TopkChunked>,
    .check = check_chunked_bits,
};

}  // namespace abtrain::compress
