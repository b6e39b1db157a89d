// Images as floating-point values: pixel / 255 if pooled or standardized, or the numbers of a
// user's arrays. They are normalized only when a batch is made, so that the border of a crop is
// black and an erased pixel is the mean.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "data/batch.h"
#include "data/dataset.h"
#include "ops/augment_images.h"

namespace abtrain::data {

// Returns the means of byte / 255 over the side x side blocks of each image: N x C x side x side,
// fp32. `pixels`: N x C x H x W bytes. `side` must divide H and W; 0: each pixel is a block.
at::Tensor pooled(const at::Tensor& pixels, std::int64_t side);
// The same, from values of any floating-point type; `side` must be above 0.
FloatImages pooled(const FloatImages& images, std::int64_t side);

// Each pixel's mean and standard deviation (population, not unbiased) over the images, summed in
// double; 1e-3 is added to the deviation. A pixel that is equal in all images carries no
// information: it gets an infinite deviation, so that it becomes 0.
Norm standard_norm(const FloatImages& images);
// Each channel's mean and deviation, repeated for all of its pixels.
Norm channel_norm(const Dataset& dataset);

// Does the same as ops::augment_images does for bytes, with the same random numbers.
Batch augment_values(
    const FloatImages& images, const Norm& norm, std::span<const std::int64_t> indices,
    const ops::Augmentation& how);

}  // namespace abtrain::data
