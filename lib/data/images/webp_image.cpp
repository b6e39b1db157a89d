#include "data/images/webp_image.h"

#include <webp/decode.h>

#include <cstring>

#include "base/error.h"

namespace abtrain::data {
namespace {

// The decoder takes four bytes per pixel besides the output, and a file of a few dozen bytes can
// hold an empty picture of any size.
constexpr std::int64_t kMaxWebpPixels = 100'000'000;

const char* webp_fault(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "Premature end of WebP file";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is not enough memory to decode it";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "has a feature that libwebp does not know";
    default:
      return "Corrupt WebP data";
  }
}

}  // namespace

bool begins_webp(std::span<const std::uint8_t> bytes) {
  const auto has = [&](std::size_t at, const char* mark) {
    return bytes.size() < at + 4 || std::memcmp(&bytes[at], mark, 4) == 0;
  };
  return bytes.size() >= 4 && has(0, "RIFF") && has(8, "WEBP");
}

ImageSize webp_size(std::span<const std::uint8_t> bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  ABT_CHECK(code == VP8_STATUS_OK, DamagedData, "{}", webp_fault(code));
  ABT_CHECK(features.has_animation == 0, DamagedData, "is an animation");
  const ImageSize size{features.width, features.height};
  ABT_CHECK(
      size.width > 0 && size.height > 0 && size.width <= kMaxWebpPixels / size.height, DamagedData,
      "claims to have {} x {} pixels", size.width, size.height);
  return size;
}

void decode_webp(std::span<const std::uint8_t> bytes, const ImageSize& size, std::uint8_t* rgb) {
  WebPDecoderConfig config;
  ABT_ASSERT(WebPInitDecoderConfig(&config) != 0, "libwebp of another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = rgb;
  config.output.u.RGBA.stride = static_cast<int>(3 * size.width);
  config.output.u.RGBA.size = static_cast<std::size_t>(3 * size.width * size.height);
  const VP8StatusCode code = WebPDecode(bytes.data(), bytes.size(), &config);
  ABT_CHECK(code == VP8_STATUS_OK, DamagedData, "{}", webp_fault(code));
}

}  // namespace abtrain::data
