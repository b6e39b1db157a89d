// The forms of augment_images.h on the CPU; arguments are checked.
#pragma once

#include "ops/augment_images.h"

namespace abtrain::ops {

void augment_images_cpu(const AugmentBatch& batch, const Augmentation& how);

}  // namespace abtrain::ops
