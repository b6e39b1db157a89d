#include "data/images/image_decoder.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/images/png_image.h"
#include "data/images/webp_image.h"

namespace abtrain::data {

namespace {

// A file format that is recognized but not read: its first bytes and their offset.
struct OtherFormat {
  std::string_view mark;
  std::size_t at;
  const char* name;
};
constexpr OtherFormat kOtherFormats[] = {
    {"GIF8", 0, "a GIF"},
    {"BM", 0, "a BMP"},
    {{"II*\0", 4}, 0, "a TIFF"},
    {{"MM\0*", 4}, 0, "a TIFF"},
    {"8BPS", 0, "a Photoshop file"},
    {"ftypavif", 4, "an AVIF"},
    {"ftyphei", 4, "a HEIC"},
    {"ftypmif1", 4, "a HEIC or AVIF"},
    {"JXL ", 4, "a JPEG XL"},
    {"jP  ", 4, "a JPEG 2000"},
    {"%PDF", 0, "a PDF"},
    {"<", 0, "text, such as SVG or a web page"},
    {"version https://git-lfs", 0, "a pointer of Git LFS (git lfs pull gets the file)"}};

// Also true for a file that was cut off within its first bytes.
bool begins_jpeg(std::span<const std::uint8_t> bytes) {
  return (bytes.empty() || bytes[0] == 0xFF) && (bytes.size() < 2 || bytes[1] == 0xD8);
}

std::string neither(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto* other = std::ranges::find_if(kOtherFormats, [&](const OtherFormat& each) {
    return text.size() >= each.at && text.substr(each.at).starts_with(each.mark);
  });
  return other == std::end(kOtherFormats)
             ? "is neither JPEG, PNG nor WebP"
             : formatted("is neither JPEG, PNG nor WebP, but {}", other->name);
}

}  // namespace

ImageSize ImageDecoder::open(std::span<const std::uint8_t> bytes) {
  bytes_ = bytes;
  format_ = begins_png(bytes) ? Format::Png : begins_webp(bytes) ? Format::Webp : Format::Jpeg;
  ABT_CHECK(format_ != Format::Jpeg || begins_jpeg(bytes), DamagedData, "{}", neither(bytes));
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
