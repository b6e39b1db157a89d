#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/difference_codes_backends.h"

namespace abtrain::ops {

void encode_difference_cuda(
    const kernels::EncodeDifference& job,
    c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(kernels::encode_difference(
      job, c10::cuda::getCurrentCUDAStream().stream()));
}

void decode_differences_cuda(
    const kernels::DecodeDifferences& job,
    c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(kernels::decode_differences(
      job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
