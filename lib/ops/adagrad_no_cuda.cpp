#include "base/error.h"
#include "ops/adagrad_backends.h"

namespace abtrain::ops {

void adagrad_step_cuda(const kernels::AdagradStep&, c10::Device) {
  ABT_ASSERT(
      false, "adagrad_step: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
