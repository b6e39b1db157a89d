#include "base/error.h"
#include "ops/augment_images_backends.h"

namespace abtrain::ops {

void augment_images_cuda(const AugmentBatch&, const Augmentation&) {
  ABT_ASSERT(
      false, "augment_images: CUDA tensors in a build with ABTRAIN_CUDA=OFF");
}

}  // namespace abtrain::ops
