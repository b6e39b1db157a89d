// The box that random erasing clears (Zhong et al., "Random erasing data augmentation", 2017),
// drawn as in torchvision's RandomErasing.get_params. Boxes are bit-identical on host and device:
// only IEEE operations are used, and every multiply-add is an explicit fma, so that no compiler
// decides whether to contract it.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/random.h"

namespace abtrain::kernels {

struct Box {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

// e^x to within one unit in the last place, for x in -700 .. 700: the Taylor series (truncation
// error below 2^-57) at x minus a multiple of log 2.
ABT_HOST_DEVICE inline double exponential(double x) {
  const double k = ::rint(x * 0x1.71547652b82fep+0);
  // log 2 in two parts; k times the first part is exact.
  double r = ::fma(-k, 0x1.62e42feep-1, x);
  r = ::fma(-k, 0x1.a39ef35793c76p-33, r);
  double sum = 1.0 / 6227020800;  // 13!
  sum = ::fma(sum, r, 1.0 / 479001600);
  sum = ::fma(sum, r, 1.0 / 39916800);
  sum = ::fma(sum, r, 1.0 / 3628800);
  sum = ::fma(sum, r, 1.0 / 362880);
  sum = ::fma(sum, r, 1.0 / 40320);
  sum = ::fma(sum, r, 1.0 / 5040);
  sum = ::fma(sum, r, 1.0 / 720);
  sum = ::fma(sum, r, 1.0 / 120);
  sum = ::fma(sum, r, 1.0 / 24);
  sum = ::fma(sum, r, 1.0 / 6);
  sum = ::fma(sum, r, 0.5);
  sum = ::fma(sum, r, 1.0);
  sum = ::fma(sum, r, 1.0);
  return ::ldexp(sum, static_cast<int>(k));
}

// Draws a box of 2 to 33 % of the area with an aspect ratio from 0.3 to 3.3.
// The box is empty after ten draws that do not fit.
ABT_HOST_DEVICE inline Box draw_erased_box(
    Random& random, std::int64_t height, std::int64_t width) {
  const double smallest = 0.02, largest = 0.33;
  const double log_low = -1.2039728043259361;  // log 0.3
  const double log_high = 1.1939224684724346;  // log 3.3
  const double whole = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = whole * ::fma(largest - smallest, double{random.uniform()}, smallest);
    const double ratio = exponential(::fma(log_high - log_low, double{random.uniform()}, log_low));
    const std::int64_t h = ::llrint(::sqrt(area * ratio));
    const std::int64_t w = ::llrint(::sqrt(area / ratio));
    if (h < height && w < width) {
      const std::int64_t top = random.below(static_cast<std::uint32_t>(height - h + 1));
      const std::int64_t left = random.below(static_cast<std::uint32_t>(width - w + 1));
      return {top, left, h, w};
    }
  }
  return {};
}

// Draws such a box with this probability, else returns an empty one. With a probability of 0, it
// draws no random number.
ABT_HOST_DEVICE inline Box draw_erased(
    Random& random, double probability, std::int64_t height, std::int64_t width) {
  return probability > 0 && random.uniform() < probability ? draw_erased_box(random, height, width)
                                                           : Box{};
}

}  // namespace abtrain::kernels
