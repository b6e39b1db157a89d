// How kernels are started and share memory. tests/kernels has another header of
// this name, which runs the same .cu files on host threads: kernels use nothing
// of a launch but what stands here and threadIdx, blockIdx, blockDim, gridDim,
// __syncthreads() (.x only).
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace abtrain::kernels {

// Queues the kernel; returns a cudaError_t as int. A kernel that shares memory
// or meets a barrier asks for shared_bytes above 0, at most 48 KiB.
template <class... Parameters, class... Arguments>
int launch(
    void (*kernel)(Parameters...),
    std::int64_t blocks,
    int threads,
    std::size_t shared_bytes,
    void* stream,
    Arguments... arguments) {
  kernel<<<
      static_cast<unsigned>(blocks),
      static_cast<unsigned>(threads),
      shared_bytes,
      static_cast<cudaStream_t>(stream)>>>(arguments...);
  return static_cast<int>(cudaGetLastError());
}

// The block's shared memory, 16-byte aligned; of undefined content.
__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char abtrain_shared_memory[];
  return abtrain_shared_memory;
}

// 16 bytes from global to shared memory, both aligned, past the registers;
// there after wait_for_copies() for this thread, for others after a barrier
// too.
__device__ inline void copy_16_bytes(void* shared, const void* global) {
  __pipeline_memcpy_async(shared, global, 16);
}
__device__ inline void wait_for_copies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

// a / b, rounded to nearest.
__device__ inline float divide(float a, float b) {
  return __fdiv_rn(a, b);
}

}  // namespace abtrain::kernels
