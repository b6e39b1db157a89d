#include "base/error.h"
#include "ops/reduce_buffers_backends.h"

namespace abtrain::ops {

void reduce_buffers_cuda(
    at::ArrayRef<at::Tensor>,
    std::int64_t,
    std::int64_t,
    at::ArrayRef<at::Tensor>,
    std::int64_t,
    ReduceOp) {
  ABT_ASSERT(
      false, "reduce_buffers: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
