// Random boxes within an image, drawn as torchvision does. Units are pixels.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "ops/erased_box.h"

namespace abtrain::data {

using ops::Box;
using ops::draw_erased;

// RandomResizedCrop.get_params: a box of `least` to `most` of the area, with an aspect ratio of 3/4
// to 4/3; after ten failed attempts, the largest such box in the center.
Box draw_crop(Random& random, std::int64_t height, std::int64_t width, double least, double most);

}  // namespace abtrain::data
