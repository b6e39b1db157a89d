// Loops over code blocks on the CPU, which the compiler vectorizes. They sum in the order that
// kernels/code_blocks.h gives.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/team.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

using kernels::all_ones;
using kernels::CodeBlock;
using kernels::groups_of;
using kernels::kBlock;
using kernels::kGroup;
using kernels::kLanes;
using kernels::kTensorLanes;

// Returns a block's elements, padded to kBlock. A block of kBlock elements is returned in place; a
// smaller block is copied to `scratch` (kBlock elements) and followed by zeros.
ABT_INLINE float* whole_block(float* from, std::int64_t count, float* scratch) {
  if (count == kBlock) {
    return from;
  }
  std::copy(from, from + count, scratch);
  std::fill(scratch + count, scratch + kBlock, 0.0f);
  return scratch;
}

// Copies kCount elements in vectors of 32 bytes, as wide as the vectors of the loops that read the
// copy: a load that spans two narrower stores stalls until they are in the cache.
template <int kCount, class T>
ABT_INLINE void copy_vectors(const T* from, T* to) {
  using Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = T;
  constexpr int kWidth = 32 / sizeof(T);
  for (int k = 0; k < kCount; k += kWidth) {
    *reinterpret_cast<Vector*>(to + k) = *reinterpret_cast<const Vector*>(from + k);
  }
}

// Loads kCount elements. Only the first `count` exist; the rest of x is set to 0.
template <int kCount, class T>
ABT_INLINE void load_first(const T* from, std::int64_t count, T* x) {
  if (count >= kCount) {
    copy_vectors<kCount>(from, x);
    return;
  }
  std::fill(std::copy_n(from, count, x), x + kCount, T{});
}
// Stores value(k) for those of kCount elements that exist, the first `count`.
template <int kCount, class T, class Value>
ABT_INLINE void store_first(T* to, std::int64_t count, const Value& value) {
  if (count >= kCount) {
    for (int k = 0; k < kCount; ++k) {
      to[k] = static_cast<T>(value(k));
    }
    return;
  }
  for (int k = 0; k < count; ++k) {
    to[k] = static_cast<T>(value(k));
  }
}

template <class T>
ABT_INLINE T add_by_halves(T* lanes, int count = kLanes) {
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

// Returns the sum of a[i] b[i]. Lane i mod kCount adds product i by fma; then add_by_halves() adds
// the first `used` lanes. The other lanes must have no elements.
template <int kCount, class Sum>
ABT_INLINE Sum
dot_in_lanes(const float* a, const float* b, std::int64_t length, int used = kCount) {
  alignas(64) Sum lanes[kCount] = {};
  std::int64_t i = 0;
  for (; i + kCount <= length; i += kCount) {
    for (int k = 0; k < kCount; ++k) {
      lanes[k] = std::fma(Sum{a[i + k]}, Sum{b[i + k]}, lanes[k]);
    }
  }
  for (int k = 0; i < length; ++i, ++k) {
    lanes[k] = std::fma(Sum{a[i]}, Sum{b[i]}, lanes[k]);
  }
  return add_by_halves(lanes, used);
}

ABT_INLINE float sum_of_squares(const float* x) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] = std::fma(x[i + kLanes], x[i + kLanes], x[i] * x[i]);
  }
  return add_by_halves(lanes);
}

// Sums the results of blocks begin .. end - 1; parts[stride * b] is the result of block b.
template <class Sum = float>
Sum add_parts(const float* parts, int stride, std::int64_t begin, std::int64_t end) {
  Sum lanes[kTensorLanes] = {};
  for (std::int64_t b = begin; b < end; ++b) {
    lanes[(b - begin) % kTensorLanes] += Sum{parts[stride * b]};
  }
  return add_by_halves(lanes, kTensorLanes);
}

// Calls work(b) for b < count, compiled for the processor at hand, on as many
// threads as ATen has. `work` must be a lambda marked ABT_INLINED. `grain` is
// the smallest number of blocks worth a thread.
template <class Work>
void for_blocks(std::int64_t count, const Work& work, std::int64_t grain = 16) {
  at::parallel_for(0, count, grain, [&](std::int64_t begin, std::int64_t end) {
    vectorized([&]() ABT_INLINED {
      for (std::int64_t b = begin; b < end; ++b) {
        work(b);
      }
    });
  });
}

}  // namespace abtrain::ops
