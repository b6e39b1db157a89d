#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "base/error.h"
#include "device/cuda_check.h"
#include "kernels/hadamard.h"
#include "ops/hadamard_backends.h"

namespace abtrain::ops {

void hadamard_cuda(const at::Tensor& x, int log_size) {
  const c10::cuda::CUDAGuard guard(x.device());
  float* data = x.mutable_data_ptr<float>();
  ABT_ASSERT(
      reinterpret_cast<std::uintptr_t>(data) % 16 == 0,
      "hadamard: on CUDA expected numbers at a multiple of 16 bytes");
  ABT_CUDA_CHECK(kernels::hadamard(
      data, x.numel(), log_size, c10::cuda::getCurrentCUDAStream().stream()));
}

}  // namespace abtrain::ops
