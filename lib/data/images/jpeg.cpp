#include "data/images/jpeg.h"

#include <turbojpeg.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace abtrain::data {
namespace {

// A Huffman code takes at least one bit for each 8 x 8 block. So a file with more pixels per byte
// is truncated, and allocating memory for the picture would be in vain.
constexpr std::int64_t kMaxPixelsPerByte = 8 * 64;
constexpr std::int64_t kAlwaysFine = 1'000'000;  // pixels: smaller images are not checked
// Each scan of a progressive file visits all pixels, however few bytes the scan has. Encoders write
// about ten scans.
constexpr std::int64_t kMaxScans = 100;
constexpr std::int64_t kMaxScannedPixels = 4'000'000'000;  // pixels, over all scans

std::string reason_of(void* handle) {
  return tjGetErrorStr2(handle);
}

// Whether the image is complete although the library gave this reason, which is the first warning
// or the error that ended the decoding. The library's error code does not distinguish a warning
// from an error that follows a warning.
bool is_tolerable(std::string_view reason) {
  constexpr const char* kTolerable[] = {
      "Corrupt JPEG data:", "Inconsistent progression", "Invalid SOS parameters",
      "Unknown Adobe color", "Warning:"};
  return std::ranges::any_of(
      kTolerable, [&](const char* warning) { return reason.starts_with(warning); });
}

// The number of scans in a file, counted up to `limit`.
std::int64_t count_scans(std::span<const std::uint8_t> bytes, std::int64_t limit) {
  constexpr std::uint8_t fill = 0xFF, start_of_scan = 0xDA, end_of_image = 0xD9;
  // Markers without a length: stuffed zeros, restarts and the like.
  const auto stands_alone = [](std::uint8_t marker) {
    return marker <= 1 || (marker >= 0xD0 && marker <= 0xD8);
  };
  std::int64_t scans = 0;
  for (std::size_t at = 0; at + 4 <= bytes.size() && scans < limit;) {
    const std::uint8_t marker = bytes[at + 1];
    if (bytes[at] != fill) {
      const auto* next =
          static_cast<const std::uint8_t*>(std::memchr(&bytes[at], fill, bytes.size() - at));
      if (next == nullptr) {
        break;
      }
      at = static_cast<std::size_t>(next - bytes.data());
    } else if (marker == fill) {
      ++at;
    } else if (stands_alone(marker)) {
      at += 2;
    } else if (marker == end_of_image) {
      break;
    } else {
      scans += marker == start_of_scan ? 1 : 0;
      at += 2 + 256U * bytes[at + 2] + bytes[at + 3];
    }
  }
  return scans;
}

// Converts CMYK to RGB. Like Pillow, takes stored values as 255 - ink, whether the file says so or
// not.
void to_rgb(const std::uint8_t* inks, std::uint8_t* rgb, std::int64_t pixels) {
  for (; pixels > 0; --pixels, inks += 4, rgb += 3) {
    const int light = inks[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - inks[c]) * light + 128;
      rgb[c] = static_cast<std::uint8_t>(light - (((product >> 8) + product) >> 8));
    }
  }
}

}  // namespace

JpegDecoder::JpegDecoder() : handle_(tjInitDecompress(), tjDestroy) {
  ABT_ASSERT(handle_ != nullptr, "libturbojpeg");
}

// Replaces the decoder, because tables that the library keeps from a damaged file would corrupt the
// next file.
void JpegDecoder::fail(const std::string& reason) {
  handle_.reset(tjInitDecompress());
  throw Error(ErrorKind::DamagedData, reason);
}

ImageSize JpegDecoder::open(std::span<const std::uint8_t> bytes) {
  int width = 0, height = 0, sampling = 0, colors = 0;
  const int result = tjDecompressHeader3(
      handle_.get(), bytes.data(), static_cast<unsigned long>(bytes.size()), &width, &height,
      &sampling, &colors);
  // The sizes are set if the header was read, with or without warnings. The
  // call also succeeds for tables alone, without an image.
  if (width <= 0 || height <= 0) {
    fail(result == 0 ? "Premature end of JPEG file" : reason_of(handle_.get()));
  }
  const std::int64_t pixels = std::int64_t{width} * height;
  ABT_CHECK(pixels <= kMaxPixels, DamagedData, "claims to have {} x {} pixels", width, height);
  ABT_CHECK(
      pixels <= kAlwaysFine || pixels / kMaxPixelsPerByte <= std::ssize(bytes), DamagedData,
      "claims to have {} x {} pixels in {} bytes", width, height, bytes.size());
  const std::int64_t limit = std::min(kMaxScans, kMaxScannedPixels / pixels);
  ABT_CHECK(
      count_scans(bytes, limit + 1) <= limit, DamagedData,
      "has more than {} scans of {} x {} pixels", limit, width, height);
  bytes_ = bytes;
  size_ = {width, height};
  cmyk_ = colors == TJCS_CMYK || colors == TJCS_YCCK;
  return size_;
}

Picture JpegDecoder::decode(int divisor) {
  const tjscalingfactor factor{1, divisor};
  const auto scaled = [&](std::int64_t side) { return TJSCALED(static_cast<int>(side), factor); };
  const int width = scaled(size_.width), height = scaled(size_.height);
  const auto count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  const auto reserve = [](std::vector<std::uint8_t>& buffer, std::size_t bytes) {
    buffer.resize(std::max(buffer.size(), bytes));
  };
  reserve(pixels_, 3 * count + kSpareBytes);
  if (cmyk_) {
    reserve(inks_, 4 * count);
  }
  // The decoder's defaults, which are also Pillow's: accurate transform and smooth upsampling of
  // the colors.
  const int result = tjDecompress2(
      handle_.get(), bytes_.data(), static_cast<unsigned long>(bytes_.size()),
      cmyk_ ? inks_.data() : pixels_.data(), width,
      /*pitch=*/0, height, cmyk_ ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS);
  if (result != 0) {
    const std::string reason = reason_of(handle_.get());
    if (!is_tolerable(reason)) {
      fail(reason);
    }
  }
  if (cmyk_) {
    to_rgb(inks_.data(), pixels_.data(), static_cast<std::int64_t>(count));
  }
  return {pixels_.data(), width, height};
}

}  // namespace abtrain::data
