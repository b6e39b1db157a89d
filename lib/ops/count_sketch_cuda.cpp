#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda_check.h"
#include "ops/count_sketch_backends.h"

namespace abtrain::ops {

void count_sketch_cuda(const kernels::CountSketch& job, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  ABT_CUDA_CHECK(
      kernels::count_sketch(job, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
