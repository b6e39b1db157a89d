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

inline bool is_aligned(const void* pointer, std::size_t bytes) {
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

}  // namespace abtrain::kernels
