// Decodes a JPEG in memory to RGB bytes, in full or smaller, to the same pixels
// as Pillow's Image.open(...).convert("RGB").
//
// Errors are Error(DamagedData) with the reason alone: broken, cut off (as for
// Pillow; other warnings of the decoder do not count), far too large, or of more
// scans than any encoder writes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace abtrain::data {

// Rows of RGB triples without gaps; some readable bytes follow the last.
struct Picture {
  const std::uint8_t* pixels = nullptr;
  std::int64_t width = 0, height = 0;
};

// For one thread; keeps its buffers.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();

  struct Size {
    std::int64_t width, height;
  };
  // Reads the header of a file, which must stay where it is for decode().
  Size open(std::span<const std::uint8_t> bytes);
  // The image that was opened, each side ceil(side / divisor); 1, 2, 4 or 8.
  // Valid until the next call.
  Picture decode(int divisor);

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  [[noreturn]] void fail(const std::string& reason);

  std::unique_ptr<void, Close> handle_;
  std::span<const std::uint8_t> bytes_;
  Size size_{};
  bool cmyk_ = false;
  std::vector<std::uint8_t> pixels_, inks_;
};

}  // namespace abtrain::data
