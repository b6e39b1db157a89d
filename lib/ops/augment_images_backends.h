// The two forms of augment_images behind its dispatch; arguments are checked.
#pragma once

#include "ops/augment_images.h"

namespace abtrain::ops {

void augment_images_cpu(const AugmentBatch& batch, const Augmentation& how);

void augment_images_cuda(const AugmentBatch& batch, const Augmentation& how);

}  // namespace abtrain::ops
