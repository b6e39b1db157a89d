// The two forms of augment_images behind its dispatch; arguments are checked.
#pragma once

#include "ops/augment_images.h"

namespace abtrain::ops {

void augment_images_cpu(
    const at::Tensor& pixels,
    const at::Tensor& labels,
    const at::Tensor& indices,
    const at::Tensor& table,
    const Augmentation& how,
    const at::Tensor& images,
    const at::Tensor& image_labels);

void augment_images_cuda(
    const at::Tensor& pixels,
    const at::Tensor& labels,
    const at::Tensor& indices,
    const at::Tensor& table,
    const Augmentation& how,
    const at::Tensor& images,
    const at::Tensor& image_labels);

}  // namespace abtrain::ops
