#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/images/augment_images.h"
#include "ops/cpu/convert.h"
#include "ops/erased_box.h"

namespace abtrain::kernels {

namespace {

constexpr std::int64_t kLevels = 256;

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
        out[c] = table[c * kLevels];
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
        out[c] = table[c * kLevels + source[c * size.area() + x]];
      }
    }
    black(out, size.width - high);
  }
}

// Not inlined, because drawing a box would take registers from the loop over all images.
[[gnu::noinline]] Treatment draw(const AugmentImages& job, std::int64_t index) {
  return draw_treatment(job.how, index, job.height, job.width);
}

template <class T>
void write_batch(const AugmentImages& job, const T* table) {
  const Size size{job.channels, job.height, job.width};
  const std::int64_t numel = size.channels * size.area();
  const auto write = size.channels == 1   ? write_image<T, 1>
                     : size.channels == 3 ? write_image<T, 3>
                                          : write_image<T, 0>;
  T* image = static_cast<T*>(job.images);
  for (std::int64_t i = 0; i < job.count; ++i, image += numel) {
    const std::int64_t index = job.indices[i];
    const auto [place, erased] = draw(job, index);
    write(job.pixels + index * numel, image, table, size, place);
    ops::erase_box(image, size.width, size.channels, erased);
  }
}

}  // namespace

void work_on_host(const AugmentImages& job) {
  for (std::int64_t i = 0; i < job.count; ++i) {
    const std::int64_t index = job.indices[i];
    ABT_ASSERT(
        index >= 0 && index < job.stored,
        "augment_images: expected an index of an image, got {} of {}", index, job.stored);
    job.image_labels[i] = job.labels[index];
  }
  if (job.element == Element::F32) {
    write_batch(job, job.table);
  } else {
    std::vector<c10::BFloat16> rounded(static_cast<std::size_t>(job.channels * kLevels));
    ops::from_float(job.table, rounded.data(), std::ssize(rounded));
    write_batch<c10::BFloat16>(job, rounded.data());
  }
}

}  // namespace abtrain::kernels
