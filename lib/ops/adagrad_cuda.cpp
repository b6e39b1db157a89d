#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/adagrad_backends.h"

namespace abtrain::ops {

void adagrad_step_cuda(const kernels::AdagradStep& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::adagrad_step(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
