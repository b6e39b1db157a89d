// How kernels load, widen and store elements.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

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
// Store rounds to nearest, ties to even.
__device__ inline void store(float& to, float x) {
  to = x;
}
__device__ inline void store(__half& to, float x) {
  to = __float2half_rn(x);
}
__device__ inline void store(__nv_bfloat16& to, float x) {
  to = __float2bfloat16_rn(x);
}

constexpr int kEight = 8;

// Loads eight adjacent elements, of which `count` exist; the others are 0.
// `wide`: they begin at a multiple of 16 bytes.
__device__ inline void load_eight(
    const float* from, std::int64_t count, bool wide, float (&x)[kEight]) {
  if (wide && count >= kEight) {
    const auto* packets = reinterpret_cast<const Packet<float, 4>*>(from);
    const Packet<float, 4> low = packets[0];
    const Packet<float, 4> high = packets[1];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      x[k] = low.values[k];
      x[4 + k] = high.values[k];
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    x[k] = k < count ? from[k] : 0.0f;
  }
}
__device__ inline void store_eight(
    float* to, std::int64_t count, bool wide, const float (&x)[kEight]) {
  if (wide && count >= kEight) {
    Packet<float, 4> low, high;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      low.values[k] = x[k];
      high.values[k] = x[4 + k];
    }
    auto* packets = reinterpret_cast<Packet<float, 4>*>(to);
    packets[0] = low;
    packets[1] = high;
    return;
  }
#pragma unroll
  for (int k = 0; k < kEight; ++k) {
    if (k < count) {
      to[k] = x[k];
    }
  }
}

}  // namespace abtrain::kernels
