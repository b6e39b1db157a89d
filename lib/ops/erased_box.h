// The box that random erasing clears, in pixels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/images/erased_box.h"

namespace abtrain::ops {

using kernels::Box;
using kernels::draw_erased;

// Sets the box to 0 in an image that is stored row by row, the channels of a pixel side by side.
template <class T>
void erase_box(T* image, std::int64_t width, std::int64_t channels, const Box& box) {
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    std::fill_n(image + (y * width + box.left) * channels, box.width * channels, T(0.0F));
  }
}

}  // namespace abtrain::ops
