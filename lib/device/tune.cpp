#include "device/tune.h"

#include <ATen/Context.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/ones.h>

namespace abtrain::device {

void tune(c10::Device device, bool shapes_stay) {
  if (device.is_cuda()) {
    at::globalContext().setBenchmarkCuDNN(shapes_stay);
    // LibTorch loads its matrix decompositions for GPUs at their first use, which fails if several
    // threads do so at once ("lazy wrapper should be called at most once").
    at::linalg_cholesky_ex(at::ones({1, 1}, device));
    // The thread that runs backward passes gets its CUDA context from its first kernel; if its
    // first call is one to cuBLAS, LibTorch warns.
    at::ones({1}, device).requires_grad_().mul(2).backward();
  }
}

}  // namespace abtrain::device
