#include "data/formats.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "data/byte_file.h"

namespace abtrain::data {
namespace {

constexpr std::uint32_t kImagesMagic = 0x803;  // bytes, 3 dimensions
constexpr std::uint32_t kLabelsMagic = 0x801;  // bytes, 1 dimension
constexpr std::int64_t kCifarSide = 32;
constexpr std::int64_t kCifarPixels = 3 * kCifarSide * kCifarSide;

std::string extent_text(const Extent& extent) {
  return formatted(
      "{} images of {} x {}", with_commas(extent.count), with_commas(extent.height),
      with_commas(extent.width));
}

void check_magic(ByteFile& file, std::uint32_t expected, const char* what) {
  const std::uint32_t magic = file.read_big_endian("header");
  ABT_CHECK(
      magic == expected, DamagedData, "{}: expected magic number {:#x} (idx {}), found {:#x}",
      file.path(), expected, what, magic);
}

void check_label(const ByteFile& file, std::int64_t at, std::uint8_t label, std::int64_t classes) {
  ABT_CHECK(
      label < classes, DamagedData, "{}: label of image {}: expected 0 .. {}, found {}",
      file.path(), at, classes - 1, static_cast<int>(label));
}

std::span<std::uint8_t> bytes_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<std::uint8_t>(), static_cast<std::size_t>(tensor.numel())};
}

at::Tensor read_idx_images(const std::string& path, const Extent& expected) {
  ByteFile file(path);
  check_magic(file, kImagesMagic, "images");
  const auto number = [&] { return file.read_big_endian("header"); };
  const Extent found{number(), number(), number()};  // in this order
  ABT_CHECK(
      found == expected, DamagedData, "{}: expected {}, found {}", path, extent_text(expected),
      extent_text(found));
  const at::Tensor pixels = at::empty({found.count, 1, found.height, found.width}, at::kByte);
  file.read(bytes_of(pixels), "images");
  file.finish();
  return pixels;
}

at::Tensor read_idx_labels(const std::string& path, std::int64_t count, std::int64_t classes) {
  ByteFile file(path);
  check_magic(file, kLabelsMagic, "labels");
  const std::int64_t found = file.read_big_endian("header");
  ABT_CHECK(
      found == count, DamagedData, "{}: expected {} labels, one for each image, found {}", path,
      with_commas(count), with_commas(found));
  const at::Tensor labels = at::empty({count}, at::kByte);
  const std::span<std::uint8_t> bytes = bytes_of(labels);
  file.read(bytes, "labels");
  file.finish();
  for (std::int64_t i = 0; i < count; ++i) {
    check_label(file, i, bytes[i], classes);
  }
  return labels.to(at::kLong);
}

}  // namespace

ByteImages read_idx(
    const std::string& images_path, const std::string& labels_path, std::int64_t classes,
    const Extent& expected) {
  ByteImages images;
  images.pixels = read_idx_images(images_path, expected);
  images.labels = read_idx_labels(labels_path, images.pixels.size(0), classes);
  return images;
}

ByteImages read_cifar(
    const std::vector<std::string>& paths, std::int64_t count, std::int64_t classes,
    std::int64_t label_bytes) {
  const auto files = static_cast<std::int64_t>(paths.size());
  ByteImages images;
  images.pixels = at::empty({files * count, 3, kCifarSide, kCifarSide}, at::kByte);
  images.labels = at::empty({files * count}, at::kLong);
  auto* pixels = images.pixels.data_ptr<std::uint8_t>();
  auto* labels = images.labels.data_ptr<std::int64_t>();
  const std::int64_t record = label_bytes + kCifarPixels;
  constexpr std::int64_t records_per_read = 64;
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(records_per_read * record));
  for (const std::string& path : paths) {
    ByteFile file(path);
    for (std::int64_t begin = 0; begin < count; begin += records_per_read) {
      const std::int64_t some = std::min(records_per_read, count - begin);
      file.read(
          std::span(buffer).first(static_cast<std::size_t>(some * record)),
          formatted("records {} .. {} of {}", begin, begin + some - 1, count));
      for (std::int64_t i = 0; i < some; ++i) {
        const std::uint8_t* from = buffer.data() + i * record;
        const std::uint8_t label = from[label_bytes - 1];
        check_label(file, begin + i, label, classes);
        *labels++ = label;
        pixels = std::copy_n(from + label_bytes, kCifarPixels, pixels);
      }
    }
    file.finish();
  }
  return images;
}

}  // namespace abtrain::data
