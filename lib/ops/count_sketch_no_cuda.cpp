#include "base/error.h"
#include "ops/count_sketch_backends.h"

namespace abtrain::ops {

void count_sketch_cuda(const kernels::CountSketch&, c10::Device) {
  ABT_ASSERT(
      false, "count_sketch: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
