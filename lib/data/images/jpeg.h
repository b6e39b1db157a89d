// Decodes a JPEG in memory to RGB bytes, at full or reduced size. The pixels are those of Pillow's
// Image.open(...).convert("RGB").
//
// Errors are Error(DamagedData) with only the reason, no path: the image is broken, truncated (by
// Pillow's standard; other warnings of the decoder are ignored), far too large, or has more scans
// than any encoder writes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/images/picture.h"

namespace abtrain::data {

// For use by one thread; keeps its buffers.
class JpegDecoder {
 public:
  JpegDecoder();

  // Reads a file's header. The bytes must stay in place for decode().
  ImageSize open(std::span<const std::uint8_t> bytes);
  // Decodes the opened image, each side scaled to ceil(side / divisor); the divisor is 1, 2, 4 or
  // 8. The result is valid until the next call.
  Picture decode(int divisor);

 private:
  [[noreturn]] void fail(const std::string& reason);

  std::unique_ptr<void, int (*)(void*)> handle_;
  std::span<const std::uint8_t> bytes_;
  ImageSize size_;
  bool cmyk_ = false;
  std::vector<std::uint8_t> pixels_, inks_;
};

}  // namespace abtrain::data
