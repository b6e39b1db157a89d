#include "ops/code_blocks_cpu.h"
#include "ops/pair_balance_backends.h"

namespace abtrain::ops {

namespace {

// Adds the row before row j, and multiplies with row j.
ABT_INLINE void
work(const kernels::PairBalance& job, int j, std::int64_t block) {
  const std::int64_t begin = block * kBlock;
  const std::int64_t count = std::min<std::int64_t>(kBlock, job.numel - begin);
  float* const sum = job.sum + begin;
  if (j > 0) {
    const float* const before = job.rows + (j - 1) * job.numel + begin;
    const auto sign = static_cast<float>(job.signs[j - 1]);
    for (std::int64_t i = 0; i < count; ++i) {
      sum[i] += sign * before[i];  // exact but for the sum
    }
  }
  if (j == job.workers) {
    return;
  }
  float room[2][kBlock];
  const float* const s = whole_block(sum, count, room[0]);
  // Only read where the block is full.
  const float* const x = whole_block(
      const_cast<float*>(job.rows) + j * job.numel + begin, count, room[1]);
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] = std::fma(s[i + kLanes], x[i + kLanes], s[i] * x[i]);
  }
  job.parts[block] = add_by_halves(lanes);
}

}  // namespace

void pair_balance_cpu(const kernels::PairBalance& job) {
  const std::int64_t blocks = (job.numel + kBlock - 1) / kBlock;
  for (int j = 0; j <= job.workers; ++j) {
    for_blocks(blocks, [&](std::int64_t b) ABT_INLINED { work(job, j, b); });
    if (j < job.workers) {
      const double product = add_parts<double>(job.parts, 1, 0, blocks);
      job.signs[j] = product <= 0 ? std::int8_t{1} : std::int8_t{-1};
    }
  }
}

}  // namespace abtrain::ops
