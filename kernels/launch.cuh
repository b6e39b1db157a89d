// How kernels are launched and share memory. tests/kernels has another header
// of this name, which runs the same .cu files on host threads. Kernels may
// therefore use only what is declared here, __syncthreads(), and the .x members
// of threadIdx, blockIdx, blockDim and gridDim.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace abtrain::kernels {

// Queues the kernel, or nothing if there are no blocks, and returns a cudaError_t as an int.
// shared_bytes is at most 48 KiB, and above 0 if the kernel uses shared memory or a barrier (tests
// check this).
template <class... Parameters, class... Arguments>
int launch(
    void (*kernel)(Parameters...), std::int64_t blocks, int threads, std::size_t shared_bytes,
    void* stream, Arguments... arguments) {
  if (blocks == 0) {
    return 0;
  }
  kernel<<<
      static_cast<unsigned>(blocks), static_cast<unsigned>(threads), shared_bytes,
      static_cast<cudaStream_t>(stream)>>>(arguments...);
  return static_cast<int>(cudaGetLastError());
}

// The block's shared memory, 16-byte aligned and uninitialized.
__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(16) unsigned char abtrain_shared_memory[];
  return abtrain_shared_memory;
}

// Copies 16 bytes, 16-byte aligned, from global to shared memory without passing through registers.
// The copy is visible to this thread after wait_for_copies(), and to other threads after the next
// barrier.
__device__ inline void copy_16_bytes(void* shared, const void* global) {
  __pipeline_memcpy_async(shared, global, 16);
}
__device__ inline void wait_for_copies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

// Makes the 32 threads of a warp wait for one another; cheaper than __syncthreads().
__device__ inline void sync_warp() {
  __syncwarp();
}

// Adds 1 to a counter in shared memory, atomically.
__device__ inline void increment(std::uint32_t* counter) {
  atomicAdd(counter, 1u);
}

// a / b, rounded to nearest.
__device__ inline float divide(float a, float b) {
  return __fdiv_rn(a, b);
}

}  // namespace abtrain::kernels
