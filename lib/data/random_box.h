// Random boxes within an image, as torchvision draws them. Pixels.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace abtrain::data {

struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// RandomErasing.get_params with its defaults: 2 to 33 % of the area, sides
// 0.3 to 3.3 to one another; an empty box after ten misses.
Box draw_erased(Random& random, std::int64_t height, std::int64_t width);

// RandomResizedCrop.get_params: `least` to `most` of the area, sides 3/4 to
// 4/3 to one another; after ten misses the largest such box in the centre.
Box draw_crop(
    Random& random,
    std::int64_t height,
    std::int64_t width,
    double least,
    double most);

}  // namespace abtrain::data
