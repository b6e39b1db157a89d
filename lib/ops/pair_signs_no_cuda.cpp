#include "base/error.h"
#include "ops/pair_signs_backends.h"

namespace abtrain::ops {

void pair_signs_cuda(const kernels::PairSigns&, c10::Device) {
  ABT_ASSERT(
      false, "pair_signs: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
