#include "base/error.h"
#include "ops/pair_balance_backends.h"

namespace abtrain::ops {

void pair_balance_cuda(const kernels::PairBalance&, c10::Device) {
  ABT_ASSERT(
      false, "pair_balance: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
