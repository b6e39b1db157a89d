#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/threshold_codes_backends.h"

namespace abtrain::ops {

void moments_cuda(const kernels::Moments& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::moments(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void encode_threshold_cuda(
    const kernels::EncodeThreshold& job,
    c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(kernels::encode_threshold(
      job, c10::cuda::getCurrentCUDAStream().stream()));
}

void average_codes_cuda(const kernels::AverageCodes& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::average_codes(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void pack_sums_cuda(const kernels::PackSums& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::pack_sums(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void unpack_sums_cuda(const kernels::UnpackSums& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::unpack_sums(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
