#include "data/images/image_decoder.h"

#include <algorithm>

#include "base/error.h"
#include "data/images/png_image.h"
#include "data/images/webp_image.h"

namespace abtrain::data {

ImageSize ImageDecoder::open(std::span<const std::uint8_t> bytes) {
  bytes_ = bytes;
  format_ = begins_png(bytes) ? Format::Png : begins_webp(bytes) ? Format::Webp : Format::Jpeg;
  ABT_CHECK(
      format_ != Format::Jpeg || bytes.size() < 2 || (bytes[0] == 0xFF && bytes[1] == 0xD8),
      DamagedData, "is neither JPEG, PNG nor WebP");
  size_ = format_ == Format::Png    ? png_size(bytes)
          : format_ == Format::Webp ? webp_size(bytes)
                                    : jpeg_.open(bytes);
  return size_;
}

Picture ImageDecoder::decode(int divisor) {
  if (format_ == Format::Jpeg) {
    return jpeg_.decode(divisor);
  }
  const auto bytes = static_cast<std::size_t>(3 * size_.width * size_.height);
  pixels_.resize(std::max(pixels_.size(), bytes + kSpareBytes));
  (format_ == Format::Png ? decode_png : decode_webp)(bytes_, size_, pixels_.data());
  return {pixels_.data(), size_.width, size_.height};
}

}  // namespace abtrain::data
