// Decodes WebP files in memory to the same pixels as Pillow's Image.open(...).convert("RGB").
// Errors are Error(DamagedData) with only the reason, no path. An animation is an error.
#pragma once

#include <cstdint>
#include <span>

#include "data/images/picture.h"

namespace abtrain::data {

bool begins_webp(std::span<const std::uint8_t> bytes);
ImageSize webp_size(std::span<const std::uint8_t> bytes);
// Decodes the image into `rgb`, which has room for 3 x width x height bytes: rows from top to
// bottom, each pixel as red, green, blue. `size` is the result of webp_size().
void decode_webp(std::span<const std::uint8_t> bytes, const ImageSize& size, std::uint8_t* rgb);

}  // namespace abtrain::data
