// Images that are no bytes any more: mean-pooled, or standardised a pixel at a
// time. Values are of pixel / 255; they are normalised as a batch is made, so
// that the border of a crop is black and an erased pixel the mean.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "data/batch.h"
#include "data/dataset.h"
#include "ops/augment_images.h"

namespace abtrain::data {

// Bytes N x C x H x W to the means of their blocks: N x C x side x side, fp32;
// `side` divides H and W. 0: each pixel by itself.
at::Tensor pooled(const at::Tensor& pixels, std::int64_t side);

// Each pixel's mean and standard deviation (of all, not unbiased) over the
// images, summed in double; 1e-3 is added to the deviation. It is infinite
// where all images are equal: such a pixel says nothing, and becomes 0.
Norm standard_norm(const at::Tensor& values);
// Each channel's mean and deviation, for all its pixels.
Norm channel_norm(const Dataset& dataset);

// As ops::augment_images does with bytes, and from the same random numbers.
Batch augment_values(
    const Images& images,
    const Norm& norm,
    std::span<const std::int64_t> indices,
    const ops::Augmentation& how,
    bool page_locked);

}  // namespace abtrain::data
