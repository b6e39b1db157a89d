// How kernels load, widen, store and combine elements.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/launch.cuh"

namespace abtrain::kernels {

// kVector adjacent elements for one aligned load or store.
template <class T, int kVector>
struct alignas(sizeof(T) * kVector) Packet {
  T values[kVector];
};

__host__ __device__ inline bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
// store() rounds to nearest, ties to even.
__device__ inline void store(float& to, float x) {
  to = x;
}
__device__ inline void store(__half& to, float x) {
  to = __float2half_rn(x);
}
__device__ inline void store(__nv_bfloat16& to, float x) {
  to = __float2bfloat16_rn(x);
}

// Loads kCount adjacent elements. Only the first `count` exist; the rest of x is set to 0. `wide`:
// `from` is aligned to 16 bytes, or to the size of kCount elements if that is smaller.
template <class T, int kCount>
__device__ void load_first(const T* from, std::int64_t count, bool wide, T (&x)[kCount]) {
  if (wide && count >= kCount) {
    constexpr int kPart = kCount * sizeof(T) < 16 ? kCount : 16 / sizeof(T);
    Packet<T, kPart> parts[kCount / kPart];
#pragma unroll
    for (int p = 0; p < kCount / kPart; ++p) {
      parts[p] = reinterpret_cast<const Packet<T, kPart>*>(from)[p];
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      x[k] = parts[k / kPart].values[k % kPart];
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    x[k] = k < count ? from[k] : T{};
  }
}
// The reverse of load_first(): stores the first `count` elements.
template <class T, int kCount>
__device__ void store_first(T* to, std::int64_t count, bool wide, const T (&x)[kCount]) {
  if (wide && count >= kCount) {
    constexpr int kPart = kCount * sizeof(T) < 16 ? kCount : 16 / sizeof(T);
#pragma unroll
    for (int begin = 0; begin < kCount; begin += kPart) {
      Packet<T, kPart> part;
#pragma unroll
      for (int k = 0; k < kPart; ++k) {
        part.values[k] = x[begin + k];
      }
      *reinterpret_cast<Packet<T, kPart>*>(to + begin) = part;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if (k < count) {
      to[k] = x[k];
    }
  }
}

// Combines the upper half of the lanes into the lower half, by combine(to, from) with lane indices,
// until only lane 0 is left. `lanes` and the number of threads are powers of two. All threads of
// the block must call it, after writing their lanes.
template <class Combine>
__device__ void combine_by_halves(int lanes, const Combine& combine) {
  constexpr int kWarp = 32;
  const auto t = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int i = t; i < half; i += threads) {
      combine(i, i + half);
    }
    // As long as half > threads, each thread next reads only lanes that it combined itself, so no
    // barrier is needed. From half <= kWarp on, only the first warp works.
    if (half > kWarp) {
      if (half <= threads) {
        __syncthreads();
      }
    } else {
      sync_warp();
    }
  }
  __syncthreads();
}

// The first error among these launch statuses, else 0.
inline int first_error(std::initializer_list<int> statuses) {
  for (const int status : statuses) {
    if (status != 0) {
      return status;
    }
  }
  return 0;
}

}  // namespace abtrain::kernels
