// The output of image decoders.
#pragma once

#include <cstddef>
#include <cstdint>

namespace abtrain::data {

// In pixels.
struct ImageSize {
  std::int64_t width = 0, height = 0;
};

// Rows of RGB triples without gaps. kSpareBytes readable bytes follow the last triple, because
// readers may load four bytes at the last pixel.
struct Picture {
  const std::uint8_t* pixels = nullptr;
  std::int64_t width = 0, height = 0;
};
inline constexpr std::size_t kSpareBytes = 16;

// Pillow treats a header that claims more pixels as an attack.
inline constexpr std::int64_t kMaxPixels = 178'956'970;

}  // namespace abtrain::data
