// Random boxes within an image, as torchvision draws them. Pixels.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "ops/erased_box.h"

namespace abtrain::data {

using ops::Box;
using ops::draw_erased;

// RandomResizedCrop.get_params: `least` to `most` of the area, sides 3/4 to
// 4/3 to one another; after ten misses the largest such box in the centre.
Box draw_crop(
    Random& random,
    std::int64_t height,
    std::int64_t width,
    double least,
    double most);

}  // namespace abtrain::data
