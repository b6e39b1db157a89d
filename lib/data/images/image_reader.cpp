#include "data/images/image_reader.h"

#include <algorithm>
#include <cmath>

namespace abtrain::data {
namespace {

// Returns the axis that resizes `pixels` to `size` and cuts out `side` at the center (CenterCrop).
// The offset is rounded half to even, as by Python's round().
Axis center(std::int64_t pixels, std::int64_t size, std::int64_t side) {
  return {
      0, static_cast<double>(pixels), size, std::lrint(static_cast<double>(size - side) / 2), side};
}

}  // namespace

void ImageReader::write_center(bool mirrored, float* out) {
  const Picture picture = decoder_.decode(1);
  const std::int64_t shorter = std::min(picture.width, picture.height);
  const auto resized = [&](std::int64_t side) { return form_.resize * side / shorter; };
  resampler_.run(
      picture, center(picture.width, resized(picture.width), form_.side),
      center(picture.height, resized(picture.height), form_.side), mirrored, form_.scale,
      form_.shift, out);
}

void ImageReader::write_box(const Box& box, bool mirrored, float* out) {
  // Only powers of two: libjpeg-turbo has fast code only for those, so the scales in between are no
  // faster.
  int divisor = decoder_.can_shrink() ? 8 : 1;
  while (divisor > 1 && std::min(box.height, box.width) < divisor * form_.side) {
    divisor /= 2;
  }
  const Picture picture = decoder_.decode(divisor);
  const auto axis = [&](std::int64_t begin, std::int64_t length) -> Axis {
    return {
        static_cast<double>(begin) / divisor, static_cast<double>(begin + length) / divisor,
        form_.side, 0, form_.side};
  };
  resampler_.run(
      picture, axis(box.left, box.width), axis(box.top, box.height), mirrored, form_.scale,
      form_.shift, out);
}

}  // namespace abtrain::data
