// The box that random erasing clears, in pixels, drawn as torchvision does.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace abtrain::ops {

struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// RandomErasing.get_params with its defaults: 2 to 33 % of the area, aspect
// ratio 0.3 to 3.3, and an empty box after ten misses. Gives the same bits on
// every machine and GPU.
Box draw_erased(Random& random, std::int64_t height, std::int64_t width);

}  // namespace abtrain::ops
