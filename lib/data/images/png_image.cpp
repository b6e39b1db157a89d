#include "data/images/png_image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace abtrain::data {
namespace {

constexpr std::string_view kPngMark("\x89PNG\r\n\x1a\n", 8);
constexpr std::string_view kPngName = kPngMark.substr(0, 4);
constexpr std::size_t kPngHeader = 33;  // mark and IHDR
// No deflate stream expands by a larger factor.
constexpr double kMaxExpansion = 1032;

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

struct PngInput {
  std::span<const std::uint8_t> left;
  std::array<char, 128> reason = {};
};

void read_png_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* input = static_cast<PngInput*>(png_get_io_ptr(png));
  if (count > input->left.size()) {
    png_error(png, "Premature end of file");
  }
  std::copy_n(input->left.data(), count, out);
  input->left = input->left.subspan(count);
}

[[noreturn]] void on_png_error(png_structp png, png_const_charp reason) {
  auto* input = static_cast<PngInput*>(png_get_error_ptr(png));
  std::strncpy(input->reason.data(), reason, input->reason.size() - 1);
  png_longjmp(png, 1);
}

void on_png_warning(png_structp, png_const_charp) {}

// Returns false if the file is damaged. No object with a destructor may live here, because an error
// jumps back to the setjmp.
bool read_png_rows(png_structp png, png_infop info, png_bytep* rows, png_uint_32 width) {
  if (setjmp(png_jmpbuf(png)) != 0) {
    return false;
  }
  png_read_info(png, info);
  const png_byte color = png_get_color_type(png, info);
  const png_byte depth = png_get_bit_depth(png, info);
  const bool clips = color == PNG_COLOR_TYPE_GRAY && depth == 16;
  if (!clips) {
    png_set_strip_16(png);
    png_set_palette_to_rgb(png);
    if (color == PNG_COLOR_TYPE_GRAY && depth < 8) {
      png_set_expand_gray_1_2_4_to_8(png);
    }
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != (clips ? 2U : 3U) * width) {
    png_error(png, "rows of another size");
  }
  if (!clips) {
    png_read_image(png, rows);
    return true;
  }
  const png_uint_32 height = png_get_image_height(png, info);
  for (png_uint_32 y = 0; y < height; ++y) {
    rows[y] += width;  // so that its 2 bytes per pixel end where the row of RGB triples ends
  }
  png_read_image(png, rows);
  for (png_uint_32 y = 0; y < height; ++y) {
    const png_byte* from = rows[y];
    png_bytep to = rows[y] - width;
    for (png_uint_32 x = 0; x < width; ++x, from += 2, to += 3) {
      const png_byte level = from[0] != 0 ? 255 : from[1];
      to[0] = to[1] = to[2] = level;
    }
  }
  return true;
}

}  // namespace

bool begins_png(std::span<const std::uint8_t> bytes) {
  const std::size_t seen = std::min(bytes.size(), kPngName.size());
  return seen > 0 && std::memcmp(bytes.data(), kPngName.data(), seen) == 0;
}

ImageSize png_size(std::span<const std::uint8_t> bytes) {
  const std::size_t marked = std::min(bytes.size(), kPngMark.size());
  ABT_CHECK(
      std::memcmp(bytes.data(), kPngMark.data(), marked) == 0, DamagedData,
      "is a PNG whose first bytes are damaged, as by a transfer as text");
  ABT_CHECK(
      bytes.size() >= kPngHeader && std::memcmp(&bytes[12], "IHDR", 4) == 0, DamagedData,
      "Premature end of PNG file");
  const ImageSize size{big_endian(&bytes[16]), big_endian(&bytes[20])};
  ABT_CHECK(
      size.width > 0 && size.height > 0 && size.width <= kMaxPixels / size.height, DamagedData,
      "claims to have {} x {} pixels", size.width, size.height);
  // Each row has at least one byte for its filter and one bit per pixel.
  const double least = static_cast<double>(size.height) *
                       (1 + static_cast<double>(size.width) * std::max<int>(1, bytes[24]) / 8);
  ABT_CHECK(
      least <= kMaxExpansion * static_cast<double>(bytes.size()), DamagedData,
      "claims to have {} x {} pixels in {} bytes", size.width, size.height, bytes.size());
  return size;
}

void decode_png(std::span<const std::uint8_t> bytes, const ImageSize& size, std::uint8_t* rgb) {
  std::vector<png_bytep> rows(static_cast<std::size_t>(size.height));
  for (std::size_t y = 0; y < rows.size(); ++y) {
    rows[y] = rgb + 3 * static_cast<std::size_t>(size.width) * y;
  }
  PngInput input{bytes};
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &input, on_png_error, on_png_warning);
  ABT_ASSERT(png != nullptr, "libpng");
  png_infop info = png_create_info_struct(png);
  ABT_ASSERT(info != nullptr, "libpng");
  png_set_read_fn(png, &input, read_png_bytes);
  const bool ok = read_png_rows(png, info, rows.data(), static_cast<png_uint_32>(size.width));
  png_destroy_read_struct(&png, &info, nullptr);
  ABT_CHECK(ok, DamagedData, "damaged PNG: {}", printable(input.reason.data()));
}

}  // namespace abtrain::data
