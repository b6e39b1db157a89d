// A small data set that a small network can learn: each class has its own
// random picture, each example is that picture plus noise.
#pragma once

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/random.h"
#include "data/dataset.h"

namespace abtrain::testing {

inline data::ByteImages toy_images(
    std::int64_t count, std::int64_t channels, std::int64_t side, std::uint32_t stream) {
  constexpr std::uint64_t kSeed = 99;
  constexpr std::int64_t kClasses = 4;
  const std::int64_t pixels = channels * side * side;
  data::ByteImages images;
  images.pixels = at::empty({count, channels, side, side}, at::kByte);
  images.labels = at::empty({count}, at::kLong);
  auto* out = images.pixels.data_ptr<std::uint8_t>();
  auto* labels = images.labels.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    Random noise(kSeed, RandomPurpose::Test, stream, static_cast<std::uint32_t>(i) + 1);
    const auto label = static_cast<std::int64_t>(noise.below(kClasses));
    labels[i] = label;
    Random picture(kSeed, RandomPurpose::Test, 1000, static_cast<std::uint32_t>(label));
    for (std::int64_t k = 0; k < pixels; ++k) {
      const float value = picture.uniform() * 120 + 40 + (noise.uniform() - 0.5F) * 80;
      *out++ = static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));
    }
  }
  return images;
}

inline data::Dataset toy_dataset(
    std::int64_t train = 512, std::int64_t channels = 1, std::int64_t side = 8) {
  data::Dataset dataset;
  dataset.name = "toy";
  dataset.channels = channels;
  dataset.height = dataset.width = side;
  dataset.classes = 4;
  dataset.mean.assign(static_cast<std::size_t>(channels), 0.4F);
  dataset.std.assign(static_cast<std::size_t>(channels), 0.2F);
  dataset.train = toy_images(train, channels, side, 1);
  dataset.test = toy_images(101, channels, side, 2);
  return dataset;
}

}  // namespace abtrain::testing
