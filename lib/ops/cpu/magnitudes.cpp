#include "kernels/blocks/magnitudes.h"

#include <limits>

#include "ops/cpu/code_blocks.h"

namespace abtrain::kernels {

using namespace ops;

namespace {

// Returns, for a block of kBlock elements, the sum and the count of the |x| above the cut. The
// first four halvings of the elements are done in registers while the buffer's next block is
// fetched from memory.
ABT_INLINE SumAndCount sum_of_magnitudes(const float* x, float cut) {
  constexpr int kWidth = 8;
  constexpr int kRows = 16;
  constexpr int kColumns = kBlock / kRows;
  constexpr int kLine = 16;  // floats per cache line
  float lanes[kColumns];
  std::uint32_t above[kWidth] = {};
  for (int i = 0; i < kColumns; i += kWidth) {
    for (int k = 0; k < kRows * kWidth; k += kLine) {
      __builtin_prefetch(x + kBlock + kRows * i + k);
    }
    float rows[kRows][kWidth];
    for (int row = 0; row < kRows; ++row) {
      for (int k = 0; k < kWidth; ++k) {
        const float magnitude = std::fabs(x[row * kColumns + i + k]);
        const std::uint32_t mask = all_ones(is_above(magnitude, cut));
        rows[row][k] = float_of(bits_of(magnitude) & mask);
        above[k] -= mask;
      }
    }
    for (int half = kRows / 2; half > 0; half /= 2) {
      for (int row = 0; row < half; ++row) {
        for (int k = 0; k < kWidth; ++k) {
          rows[row][k] += rows[row + half][k];
        }
      }
    }
    for (int k = 0; k < kWidth; ++k) {
      lanes[i + k] = rows[0][k];
    }
  }
  return {add_by_halves(lanes, kColumns), static_cast<int>(add_by_halves(above, kWidth))};
}

ABT_INLINE float largest_of(const float* x, std::int64_t count) {
  constexpr int kWidth = 64;
  float lanes[kWidth] = {};
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    for (int k = 0; k < kWidth; ++k) {
      lanes[k] = larger(lanes[k], std::fabs(x[i + k]));
    }
  }
  float most = 0;
  for (; i < count; ++i) {
    most = larger(most, std::fabs(x[i]));
  }
  for (const float lane : lanes) {
    most = larger(most, lane);
  }
  return most;
}

ABT_INLINE void work(const Magnitudes& job, std::int64_t b) {
  const CodeBlock& block = job.blocks[b];
  const float* const u = job.u + block.begin;
  if (job.statistic == Statistic::Largest) {
    job.parts[b] = largest_of(u, block.count);
    return;
  }
  float scratch[kBlock];
  // A full block is used in place and only read, so the cast is safe.
  const float* const x = whole_block(const_cast<float*>(u), block.count, scratch);
  float* const parts = job.parts + 2 * b;
  if (job.statistic == Statistic::Moments) {
    parts[0] = sum_of_squares(x);
    parts[1] = sum_of_magnitudes(x, -1).sum;
    return;
  }
  const float cut = cut_of(job, block.slot);
  const SumAndCount above = sum_of_magnitudes(x, cut);
  parts[0] = above.sum;
  parts[1] = without_padding(static_cast<float>(above.count), cut, block);
}

float largest_part(const float* parts, std::int64_t begin, std::int64_t end) {
  float most = 0;
  for (std::int64_t b = begin; b < end; ++b) {
    most = larger(most, parts[b]);
  }
  constexpr auto kLimits = std::numeric_limits<float>();
  return most <= kLimits.max() ? most : kLimits.infinity();
}

}  // namespace

void work_on_host(const Magnitudes& job) {
  for_blocks(job.count, [&](std::int64_t b) ABT_INLINED { work(job, b); });
  for (std::int64_t tensor = 0; tensor < job.tensors; ++tensor) {
    const std::int64_t first = job.firsts[tensor];
    const std::int64_t end = job.firsts[tensor + 1];
    if (job.statistic == Statistic::Largest) {
      job.results[tensor] = largest_part(job.parts, first, end);
      continue;
    }
    float* const results = job.results + 2 * tensor;
    results[0] = add_parts(job.parts, 2, first, end);
    results[1] = add_parts(job.parts + 1, 2, first, end);
    if (job.statistic == Statistic::Above) {
      results[0] = sum_above(results[0], results[1], cut_of(job, tensor));
    }
  }
}

}  // namespace abtrain::kernels
