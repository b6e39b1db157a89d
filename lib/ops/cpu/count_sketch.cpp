#include <algorithm>
#include <bit>

#include "kernels/orders/count_sketch.h"
#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// sums[i] += element index + i with its sign.
ABT_INLINE void add_signed(
    const CountSketch& job, std::int64_t index, std::int64_t count, float* sums) {
  const float* const first = job.first + index;
  const bool both = job.second != nullptr;
  const float* const second = both ? job.second + index : first;
  for (std::int64_t i = 0; i < count; ++i) {
    const float x = first[i] - (both ? second[i] : 0.0f);
    sums[i] += std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ sign_of(index + i, job.seed));
  }
}

ABT_INLINE void add_chunks(const CountSketch& job, std::int64_t part) {
  float* const sums = job.parts + part * job.buckets;
  std::fill(sums, sums + job.buckets, 0.0f);
  const std::int64_t begin = part * kSketchChunks;
  for (std::int64_t c = begin; c < begin + kSketchChunks; ++c) {
    const std::int64_t index = c * job.buckets;
    if (index >= job.numel) {
      return;
    }
    const std::int64_t count = std::min(job.buckets, job.numel - index);
    const std::int64_t turn = turn_of(c, job.buckets, job.seed);
    const std::int64_t straight = std::min(count, job.buckets - turn);
    add_signed(job, index, straight, sums + turn);
    add_signed(job, index + straight, count - straight, sums);
  }
}

}  // namespace

void work_on_host(const CountSketch& job) {
  const std::int64_t parts = sketch_parts(job);
  for_blocks(parts, [&](std::int64_t p) ABT_INLINED { add_chunks(job, p); });
  std::fill(job.out, job.out + job.buckets, 0.0f);
  for (std::int64_t p = 0; p < parts; ++p) {
    for (std::int64_t b = 0; b < job.buckets; ++b) {
      job.out[b] += job.parts[p * job.buckets + b];
    }
  }
}

}  // namespace abtrain::kernels
