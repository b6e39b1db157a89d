#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/level_codes_backends.h"

namespace abtrain::ops {

void survivors_cuda(const kernels::Survivors& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::survivors(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void largest_cuda(const kernels::Largest& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::largest(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void encode_levels_cuda(const kernels::EncodeLevels& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::encode_levels(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void average_levels_cuda(const kernels::AverageLevels& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::average_levels(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void average_byte_levels_cuda(const kernels::AverageByteLevels& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::average_byte_levels(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
