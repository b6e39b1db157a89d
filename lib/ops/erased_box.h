// The box that random erasing clears, in pixels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/images/erased_box.h"

namespace abtrain::ops {

using kernels::Box;

// Such a box with this probability, else an empty one; draws nothing for 0.
// Random is the class of either base/random.h or kernels/random.h.
template <class Random>
Box draw_erased(Random& random, double probability, std::int64_t height, std::int64_t width) {
  return probability > 0 && random.uniform() < probability
             ? kernels::draw_erased_box(random, height, width)
             : Box{};
}

// Clears the box of an image that lies row by row, the channels of a pixel side
// by side.
template <class T>
void erase_box(T* image, std::int64_t width, std::int64_t channels, const Box& box) {
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    std::fill_n(image + (y * width + box.left) * channels, box.width * channels, T(0.0F));
  }
}

}  // namespace abtrain::ops
