#include "data/images/random_box.h"

#include <cmath>

namespace abtrain::data {
namespace {

constexpr int kAttempts = 10;

double between(Random& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

// A random integer in 0 .. last.
std::int64_t place(Random& random, std::int64_t last) {
  return random.below(static_cast<std::uint32_t>(last + 1));
}

}  // namespace

Box draw_crop(Random& random, std::int64_t height, std::int64_t width, double least, double most) {
  constexpr double narrowest = 3.0 / 4, widest = 4.0 / 3;
  const double log_low = std::log(narrowest), log_high = std::log(widest);
  const double whole = static_cast<double>(height) * static_cast<double>(width);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area = whole * between(random, least, most);
    const double ratio = std::exp(between(random, log_low, log_high));
    const std::int64_t w = std::lrint(std::sqrt(area * ratio));
    const std::int64_t h = std::lrint(std::sqrt(area / ratio));
    if (0 < w && w <= width && 0 < h && h <= height) {
      const std::int64_t top = place(random, height - h);
      return {top, place(random, width - w), h, w};
    }
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t h = height, w = width;
  if (ratio < narrowest) {
    h = std::lrint(static_cast<double>(w) / narrowest);
  } else if (ratio > widest) {
    w = std::lrint(static_cast<double>(h) * widest);
  }
  return {(height - h) / 2, (width - w) / 2, h, w};
}

}  // namespace abtrain::data
