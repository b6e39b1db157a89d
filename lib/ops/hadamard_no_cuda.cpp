#include "base/error.h"
#include "ops/hadamard_backends.h"

namespace abtrain::ops {

void hadamard_cuda(const at::Tensor&, int) {
  ABT_ASSERT(false, "hadamard: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
