// Blocks of codes on the CPU: loops that the compiler makes vectors of, in the
// order of sums of kernels/code_blocks.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/code_blocks.h"
#include "ops/simd_cpu.h"

// Inlined into each form of a function that is compiled for more than one
// processor.
#define ABT_INLINE [[gnu::always_inline]] inline

namespace abtrain::ops {

using kernels::CodeBlock;
using kernels::kBlock;
using kernels::kGroup;
using kernels::kLanes;

ABT_INLINE std::int64_t groups_of(const CodeBlock& block) {
  return (block.count + kGroup - 1) / kGroup;
}

// All numbers of a block: where they are, or, of one that is not full, in
// `room` (kBlock) with zeros behind them.
ABT_INLINE float* whole_block(float* from, std::int64_t count, float* room) {
  if (count == kBlock) {
    return from;
  }
  std::copy(from, from + count, room);
  std::fill(room + count, room + kBlock, 0.0f);
  return room;
}

ABT_INLINE float add_by_halves(float* lanes) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

ABT_INLINE float sum_of_squares(const float* x) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] = std::fma(x[i + kLanes], x[i + kLanes], x[i] * x[i]);
  }
  return add_by_halves(lanes);
}

// Lanes that add up a tensor's blocks, as those of a block.
constexpr int kTensorLanes = 256;

// Of the pairs that blocks begin .. end - 1 have left, the first numbers' sum.
inline float
add_parts(const float* parts, std::int64_t begin, std::int64_t end) {
  float lanes[kTensorLanes] = {};
  for (std::int64_t b = begin; b < end; ++b) {
    lanes[(b - begin) % kTensorLanes] += parts[2 * b];
  }
  for (int half = kTensorLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

// A mask for choices without a branch, which compilers make vectors of.
ABT_INLINE std::uint32_t all_ones(bool condition) {
  return 0u - std::uint32_t{condition};
}

// Bit k of word w: test(32 w + k).
template <class Test>
ABT_INLINE void
pack_bits(std::int64_t groups, std::uint32_t* words, const Test& test) {
  for (std::int64_t g = 0; g < groups; ++g) {
    std::uint32_t word = 0;
    for (unsigned k = 0; k < kGroup; ++k) {
      word |= test(g * kGroup + k) << k;
    }
    words[g] = word;
  }
}

// Calls work(b) for b < count, compiled for the processor at hand. `work` is a
// lambda that is inlined always (ABT_INLINED).
#define ABT_INLINED __attribute__((always_inline))

template <class Work>
#if defined(__x86_64__)
// The same loops, with instructions that the baseline lacks.
__attribute__((target("avx2,fma")))
#endif
void for_blocks_wide(std::int64_t count, const Work& work) {
  for (std::int64_t b = 0; b < count; ++b) {
    work(b);
  }
}

template <class Work>
void for_blocks(std::int64_t count, const Work& work) {
  if (best_simd() == Simd::Avx2) {
    for_blocks_wide(count, work);
    return;
  }
  for (std::int64_t b = 0; b < count; ++b) {
    work(b);
  }
}

}  // namespace abtrain::ops
