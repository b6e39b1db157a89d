#include "ops/launch.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/cuda/check.h"

namespace abtrain::ops {

void launch_on_gpu(
    const char* op, c10::Device device, c10::function_ref<int(void* stream)> kernel) {
  const c10::cuda::CUDAGuard guard(device);
  if (const int status = kernel(c10::cuda::getCurrentCUDAStream().stream())) {
    device::throw_cuda_error(status, op);
  }
}

}  // namespace abtrain::ops
