#include "base/error.h"
#include "ops/gram_schmidt_backends.h"

namespace abtrain::ops {

void gram_schmidt_cuda(const at::Tensor&, const std::vector<RowSet>&) {
  ABT_ASSERT(
      false, "gram_schmidt: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
