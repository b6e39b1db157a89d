// Decodes PNG files in memory to the same pixels as Pillow's Image.open(...).convert("RGB"):
// transparency and color profiles are ignored, 16-bit colors keep their upper 8 bits, and 16-bit
// gray values above 255 become 255. Errors are Error(DamagedData) with only the reason, no path.
#pragma once

#include <cstdint>
#include <span>

#include "data/images/picture.h"

namespace abtrain::data {

bool begins_png(std::span<const std::uint8_t> bytes);
ImageSize png_size(std::span<const std::uint8_t> bytes);
// Decodes the image into `rgb`, which has room for 3 x width x height bytes: rows from top to
// bottom, each pixel as red, green, blue. `size` is the result of png_size().
void decode_png(std::span<const std::uint8_t> bytes, const ImageSize& size, std::uint8_t* rgb);

}  // namespace abtrain::data
