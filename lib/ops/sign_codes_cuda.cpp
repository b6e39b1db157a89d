#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/sign_codes_backends.h"

namespace abtrain::ops {

void encode_signs_cuda(const kernels::EncodeSigns& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::encode_signs(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void serve_signs_cuda(const kernels::ServeSigns& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::serve_signs(job, c10::cuda::getCurrentCUDAStream().stream()));
}

void decode_signs_cuda(const kernels::DecodeSigns& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::decode_signs(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
