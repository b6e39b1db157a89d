#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/pair_signs_backends.h"

namespace abtrain::ops {

void pair_signs_cuda(const kernels::PairSigns& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::pair_signs(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
