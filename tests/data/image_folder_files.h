// Small JPEG files and folders of them.
#pragma once

#include <turbojpeg.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "data/data_files.h"
#include "data/images/jpeg.h"

namespace abtrain::data {

// RGB bytes with the spare ones that a Picture has.
struct Rgb {
  std::int64_t width = 0, height = 0;
  Bytes bytes;
  Rgb(std::int64_t w, std::int64_t h)
      : width(w), height(h), bytes(static_cast<std::size_t>(3 * w * h + 16)) {}
  std::uint8_t& at(std::int64_t y, std::int64_t x, std::int64_t c) {
    return bytes[static_cast<std::size_t>(3 * (y * width + x) + c)];
  }
  std::uint8_t at(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return bytes[static_cast<std::size_t>(3 * (y * width + x) + c)];
  }
  Picture picture() const {
    return {bytes.data(), width, height};
  }
};

inline Rgb noise(std::int64_t width, std::int64_t height, std::uint32_t seed) {
  Rgb image(width, height);
  image.bytes = random_bytes(image.bytes.size(), seed);
  return image;
}

// Waves, which survive a JPEG.
inline Rgb smooth(std::int64_t width, std::int64_t height, double phase) {
  Rgb image(width, height);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) {
        const double wave =
            std::sin(phase + 0.11 * static_cast<double>(x)) +
            std::cos(2 * phase + 0.07 * static_cast<double>(y) + static_cast<double>(c));
        image.at(y, x, c) = static_cast<std::uint8_t>(128 + 50 * wave);
      }
    }
  }
  return image;
}

inline Bytes jpeg_of(
    const Rgb& image, int subsampling = TJSAMP_420, int quality = 90, int flags = 0) {
  const tjhandle handle = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  tjCompress2(
      handle, image.bytes.data(), static_cast<int>(image.width), 0, static_cast<int>(image.height),
      TJPF_RGB, &out, &size, subsampling, quality, flags);
  Bytes bytes(out, out + size);
  tjFree(out);
  tjDestroy(handle);
  return bytes;
}

inline void add_jpeg(const std::string& path, const Rgb& image, int subsampling = TJSAMP_420) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, jpeg_of(image, subsampling));
}

// `classes` folders c0, c1, ... with `train` and `val` images each, of
// differing sizes.
inline void add_image_folder(const TempFolder& root, int classes, int train, int val) {
  for (int c = 0; c < classes; ++c) {
    for (int i = 0; i < train + val; ++i) {
      const std::string part = i < train ? "train" : "val";
      add_jpeg(
          root / formatted("{}/c{}/{}.jpg", part, c, i),
          smooth(40 + 7 * i, 48 - 3 * c, c + 0.1 * i));
    }
  }
}

inline DataOptions options_of(const TempFolder& root, AugmentName augment = AugmentName::None) {
  DataOptions options;
  options.name = "image-folder";
  options.root = root.path();
  options.augment = augment;
  options.image_size = 24;
  options.resize = 28;
  return options;
}

inline Indices labels_of(const at::Tensor& labels) {
  const auto* data = labels.const_data_ptr<std::int64_t>();
  return {data, data + labels.numel()};
}

}  // namespace abtrain::data
