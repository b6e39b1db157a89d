#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "ops/cpu/augment_images.h"
#include "ops/cpu/convert.h"
#include "ops/erased_box.h"

namespace abtrain::ops {

namespace {

constexpr std::int64_t levels = 256;

// Dimensions of one image, in pixels.
struct Size {
  std::int64_t channels, height, width;
  std::int64_t area() const {
    return height * width;
  }
};

// Converts C x H x W bytes to H x W x C values. A fixed number of channels lets
// the compiler unroll over them; 0 takes the number from `size`.
template <class T, int fixed_channels>
void write_image(
    const std::uint8_t* from, T* to, const T* table, const Size& size, const Placement& place) {
  const std::int64_t channels = fixed_channels ? fixed_channels : size.channels;
  const std::int64_t low = std::clamp<std::int64_t>(-place.right, 0, size.width);
  const std::int64_t high = std::clamp<std::int64_t>(size.width - place.right, low, size.width);
  const std::int64_t step = place.mirrored ? -channels : channels;
  const auto black = [&](T* out, std::int64_t count) {
    for (; count > 0; --count, out += step) {
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = table[c * levels];
      }
    }
  };
  for (std::int64_t y = 0; y < size.height; ++y) {
    T* row = to + y * size.width * channels + (place.mirrored ? (size.width - 1) * channels : 0);
    const std::int64_t source_y = y + place.down;
    if (source_y < 0 || source_y >= size.height) {
      black(row, size.width);
      continue;
    }
    black(row, low);
    const std::uint8_t* source = from + source_y * size.width + place.right;
    T* out = row + low * step;
    for (std::int64_t x = low; x < high; ++x, out += step) {
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = table[c * levels + source[c * size.area() + x]];
      }
    }
    black(out, size.width - high);
  }
}

template <class T>
void write_batch(
    const at::Tensor& pixels, const at::Tensor& indices, const T* table, const Augmentation& how,
    const at::Tensor& images) {
  const Size size{pixels.size(1), pixels.size(2), pixels.size(3)};
  const std::int64_t numel = size.channels * size.area();
  const auto write = size.channels == 1   ? write_image<T, 1>
                     : size.channels == 3 ? write_image<T, 3>
                                          : write_image<T, 0>;
  const auto* from = pixels.const_data_ptr<std::uint8_t>();
  const auto* index = indices.const_data_ptr<std::int64_t>();
  T* image = images.mutable_data_ptr<T>();
  for (std::int64_t i = 0; i < indices.size(0); ++i, image += numel) {
    Random random(
        how.seed, RandomPurpose::Augment, static_cast<std::uint32_t>(how.epoch),
        static_cast<std::uint32_t>(index[i]));
    const Placement place = draw_placement(random, how);
    write(from + index[i] * numel, image, table, size, place);
    const Box erased = draw_erased(random, how.erase, size.height, size.width);
    erase_box(image, size.width, size.channels, erased);
  }
}

}  // namespace

void augment_images_cpu(const AugmentBatch& batch, const Augmentation& how) {
  const auto& [pixels, labels, indices, table, images, image_labels] = batch;
  const auto* index = indices.const_data_ptr<std::int64_t>();
  const auto* from = labels.const_data_ptr<std::int64_t>();
  auto* to = image_labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < indices.size(0); ++i) {
    ABT_ASSERT(
        index[i] >= 0 && index[i] < labels.size(0),
        "augment_images: expected an index of an image, got {} of {}", index[i], labels.size(0));
    to[i] = from[index[i]];
  }
  const auto* values = table.const_data_ptr<float>();
  if (images.scalar_type() == at::kFloat) {
    write_batch(pixels, indices, values, how, images);
  } else {
    std::vector<c10::BFloat16> rounded(static_cast<std::size_t>(table.numel()));
    from_float(values, rounded.data(), table.numel());
    write_batch<c10::BFloat16>(pixels, indices, rounded.data(), how, images);
  }
}

}  // namespace abtrain::ops
