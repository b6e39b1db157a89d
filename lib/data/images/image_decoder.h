// Decodes a JPEG, PNG or WebP in memory to RGB bytes. The first bytes decide the format, not the
// file's name. Errors are Error(DamagedData) with only the reason, no path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/jpeg.h"
#include "data/images/picture.h"

namespace abtrain::data {

// For use by one thread; keeps its buffers.
class ImageDecoder {
 public:
  // Reads a file's header. The bytes must stay in place for decode().
  ImageSize open(std::span<const std::uint8_t> bytes);
  // Whether decode() takes divisors other than 1.
  bool can_shrink() const {
    return format_ == Format::Jpeg;
  }
  // See JpegDecoder::decode().
  Picture decode(int divisor);

 private:
  enum class Format { Jpeg, Png, Webp };
  Format format_ = Format::Jpeg;
  std::span<const std::uint8_t> bytes_;
  ImageSize size_;
  JpegDecoder jpeg_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace abtrain::data
