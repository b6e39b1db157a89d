// Reduces a range of n device buffers in rank order and writes the result to each of m buffers, so
// that workers that share one GPU average without a copy. Accumulates in fp32 and rounds once.
// Integers are added modulo 2^bits and have no mean (cudaErrorInvalidValue). The launcher takes
// device pointers and a cudaStream_t, and returns a cudaError_t. The host has its own
// implementation, which also takes fp64 and int64 and works in tiles that fit the first-level
// cache.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/bits.h"
#include "kernels/element.h"

namespace abtrain::kernels {

constexpr int kMaxBuffers = 128;

enum class ReduceOp { Sum, Mean, Max };

struct BufferList {
  int count = 0;
  void* data[kMaxBuffers];  // each points to the range's first element
};

// The type in which elements are accumulated. Integers are accumulated in their own type: modulo
// 2^bits, this gives the same sum as a wider type.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;

template <class T>
ABT_INLINE T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Signed overflow is undefined in C++.
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

ABT_LAUNCHER int reduce_buffers(
    const BufferList& in, const BufferList& out, std::int64_t numel, Element element, ReduceOp op,
    void* stream);

}  // namespace abtrain::kernels
