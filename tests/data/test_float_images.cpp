#include "data/images/float_images.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "data/augment.h"
#include "data/data_files.h"
#include "example_kinds.h"

namespace abtrain::data {
namespace {

Dataset with_values(Dataset set) {
  const ByteImages& bytes = as_bytes(set.train);
  set.train = FloatImages{
      pooled(bytes.pixels, 0), bytes.labels, {}, at::arange(bytes.labels.size(0), at::kLong)};
  set.norm = channel_norm(set);
  return set;
}

// A pixel's mean and deviation in float64, one number after the other.
struct Figures {
  double mean = 0, std = 0;
};
Figures figures_of(const at::Tensor& values, std::int64_t c, std::int64_t y, std::int64_t x) {
  const auto all = values.accessor<float, 4>();
  const auto count = static_cast<double>(all.size(0));
  Figures f;
  for (std::int64_t i = 0; i < all.size(0); ++i) {
    f.mean += all[i][c][y][x] / count;
  }
  for (std::int64_t i = 0; i < all.size(0); ++i) {
    f.std += std::pow(all[i][c][y][x] - f.mean, 2) / count;
  }
  f.std = std::sqrt(f.std);
  return f;
}

TEST(Pool, IsTheMeanOfEachBlock) {
  const ByteImages images = random_images(3, 2, 6, 9);
  const at::Tensor values = pooled(images.pixels, 3);
  ASSERT_EQ(values.sizes(), (Indices{3, 2, 3, 3}));
  const auto bytes = images.pixels.accessor<std::uint8_t, 4>();
  const auto means = values.accessor<float, 4>();
  for (int i = 0; i < 3; ++i) {
    for (int c = 0; c < 2; ++c) {
      for (int y = 0; y < 3; ++y) {
        for (int x = 0; x < 3; ++x) {
          double mean = 0;
          for (int k = 0; k < 6; ++k) {
            mean += bytes[i][c][2 * y + k / 3][3 * x + k % 3] / 255.0 / 6;
          }
          EXPECT_NEAR(means[i][c][y][x], mean, 6e-8);
        }
      }
    }
  }
}

// The byte path is the reference, to the bit.
TEST(FloatImages, UnpooledAreAugmentedAsBytesAre) {
  for (const std::int64_t channels : {1, 2, 3}) {
    const Dataset bytes = random_set(30, channels, 6, 8);
    const Dataset values = with_values(bytes);
    for (const AugmentName name :
         {AugmentName::None, AugmentName::Flip, AugmentName::Crop, AugmentName::CropFlip}) {
      const DataOptions options{.augment = name, .pad = 3, .erase = 0.5};
      const Augment of_bytes(options, bytes, 4), of_values(options, values, 4);
      for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
        const Batch a = of_bytes.training(bytes.train, first(30), epoch);
        const Batch b = of_values.training(values.train, first(30), epoch);
        EXPECT_TRUE(at::equal(a.inputs, b.inputs)) << static_cast<int>(name);
        EXPECT_TRUE(at::equal(a.labels, b.labels)) << static_cast<int>(name);
        EXPECT_EQ(a.inputs.strides(), b.inputs.strides());
      }
      const Batch a = of_bytes.evaluation(bytes.train, 7, 21);
      const Batch b = of_values.evaluation(values.train, 7, 21);
      EXPECT_TRUE(at::equal(a.inputs, b.inputs));
      EXPECT_TRUE(at::equal(a.labels, b.labels));
    }
  }
}

TEST(Standardize, LessTheMeanOverTheDeviation) {
  Dataset set = with_values(random_set(50, 3, 6, 8));
  set.norm = standard_norm(as_floats(set.train));
  const at::Tensor images = Augment({}, set, 1).evaluation(set.train, 0, 50).inputs;
  const auto out = images.accessor<float, 4>();
  const auto raw = as_floats(set.train).values.accessor<float, 4>();
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 8; ++x) {
        const Figures f = figures_of(as_floats(set.train).values, c, y, x);
        for (int i = 0; i < 50; ++i) {
          EXPECT_NEAR(out[i][c][y][x], (raw[i][c][y][x] - f.mean) / (f.std + 1e-3), 3e-6);
        }
      }
    }
  }
}

// In many pieces, and of a mean far from 0.
TEST(Standardize, FiguresOfManyImages) {
  Dataset set = random_set(3000, 1, 6, 8);
  as_bytes(set.train).pixels.bitwise_or_(0xF0);
  const at::Tensor values = pooled(as_bytes(set.train).pixels, 2);
  const Norm norm =
      standard_norm({values, as_bytes(set.train).labels, {}, at::arange(3000, at::kLong)});
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      const Figures f = figures_of(values, 0, y, x);
      EXPECT_NEAR(norm.mean[0][y][x].item<double>(), f.mean, 1e-7);
      EXPECT_NEAR(norm.std[0][y][x].item<double>(), f.std + 1e-3, 1e-8);
    }
  }
}

// Of other images too, whatever they have there.
TEST(Standardize, APixelThatNeverDiffersIsZero) {
  Dataset set = random_set(9, 1, 6, 8);
  const ByteImages others = random_images(9, 1, 6, 8);
  as_bytes(set.train).pixels.select(2, 1).fill_(77);
  set = with_values(set);
  set.norm = standard_norm(as_floats(set.train));
  set.test = FloatImages{pooled(others.pixels, 0), others.labels, {}, at::arange(9, at::kLong)};
  const Augment augment({}, set, 1);
  for (const Examples* part : {&set.train, &set.test}) {
    const at::Tensor images = augment.evaluation(*part, 0, 9).inputs;
    EXPECT_TRUE(images.isfinite().all().item<bool>());
    EXPECT_EQ(images.select(2, 1).abs().max().item<float>(), 0);
    EXPECT_GT(images.select(2, 0).abs().max().item<float>(), 0.5F);
  }
}

// A window of the black-bordered image, then standardized where it lies now.
TEST(Standardize, CropAndFlipComeFirst) {
  Dataset set = with_values(random_set(20, 1, 6, 8));
  set.norm = standard_norm(as_floats(set.train));
  const at::Tensor padded =
      at::constant_pad_nd(as_floats(set.train).values.slice(0, 0, 1), {1, 1, 1, 1}, 0);
  std::vector<at::Tensor> cuts;
  for (std::int64_t k = 0; k < 9; ++k) {
    const at::Tensor cut = padded.slice(2, k / 3, k / 3 + 6).slice(3, k % 3, k % 3 + 8);
    cuts.push_back(cut);
    cuts.push_back(at::flip(cut, {3}));
  }
  const at::Tensor wanted = (at::cat(cuts) - set.norm.mean) / set.norm.std;
  const Augment augment({.augment = AugmentName::CropFlip, .pad = 1}, set, 3);
  at::Tensor seen = at::zeros({18}, at::kLong);
  for (int epoch = 0; epoch < 300; ++epoch) {
    const Batch batch = augment.training(set.train, first(1), epoch);
    const at::Tensor near = (wanted - batch.inputs).abs().amax({1, 2, 3}) < 1e-5;
    ASSERT_EQ(near.sum().item<std::int64_t>(), 1) << "epoch " << epoch;
    seen += near;
  }
  EXPECT_GT(seen.min().item<std::int64_t>(), 0);
}

}  // namespace
}  // namespace abtrain::data
