#include "data/augment.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/any.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/data_files.h"
#include "example_kinds.h"

namespace abtrain::data {
namespace {

// (pixel / 255 - mean) / std by whole-tensor operations.
at::Tensor normalized(const Dataset& set, const at::Tensor& pixels) {
  const auto channel = [](const std::vector<float>& values) {
    return at::tensor(values).view({1, -1, 1, 1});
  };
  return (pixels.to(at::kFloat) / 255 - channel(set.mean)) / channel(set.std);
}

class AugmentOf : public ::testing::TestWithParam<int> {};

TEST_P(AugmentOf, EvaluationNormalizes) {
  const Dataset set = random_set(7, GetParam(), 5, 7);
  const Augment augment({.augment = AugmentName::CropFlip, .erase = 1}, set, 1);
  const Batch batch = augment.evaluation(set.train, 2, 7);
  EXPECT_TRUE(at::allclose(
      batch.inputs, normalized(set, as_bytes(set.train).pixels.slice(0, 2)), 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(batch.labels, as_bytes(set.train).labels.slice(0, 2)));
}

TEST_P(AugmentOf, LayoutTypeAndSizes) {
  const Dataset set = random_set(5, GetParam(), 5, 7);
  const Augment augment({}, set, 1);
  for (const std::int64_t count : {0, 1, 5}) {
    for (const Batch& batch :
         {augment.training(set.train, first(count), 0), augment.evaluation(set.train, 0, count)}) {
      EXPECT_EQ(batch.inputs.scalar_type(), at::kFloat);
      EXPECT_EQ(batch.labels.scalar_type(), at::kLong);
      EXPECT_EQ(batch.labels.size(0), count);
      EXPECT_EQ(batch.inputs.sizes(), (Indices{count, GetParam(), 5, 7}));
      EXPECT_TRUE(batch.inputs.is_contiguous(
          GetParam() > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous));
    }
  }
}

TEST_P(AugmentOf, NoneTakesTheNamedExamples) {
  const Dataset set = random_set(9, GetParam(), 5, 7);
  const Indices indices = {8, 0, 3, 3};
  const Batch batch = Augment({}, set, 1).training(set.train, indices, 4);
  const at::Tensor chosen = at::tensor(indices, at::kLong);
  EXPECT_TRUE(at::allclose(
      batch.inputs, normalized(set, at::index_select(as_bytes(set.train).pixels, 0, chosen)), 1e-6,
      1e-6));
  EXPECT_TRUE(at::equal(batch.labels, at::index_select(as_bytes(set.train).labels, 0, chosen)));
}

// Every image is one of the windows of the padded image, mirrored or not, as
// the plain reference cuts them; and all windows come up.
TEST_P(AugmentOf, CropAndFlipAreWindowsOfThePaddedImage) {
  const std::int64_t pad = 2, height = 5, width = 7, windows = 2 * pad + 1;
  const Dataset set = random_set(1, GetParam(), height, width);
  const at::Tensor padded =
      at::constant_pad_nd(as_bytes(set.train).pixels, {pad, pad, pad, pad}, 0);
  std::vector<at::Tensor> cuts;
  for (std::int64_t top = 0; top < windows; ++top) {
    for (std::int64_t left = 0; left < windows; ++left) {
      const at::Tensor cut = padded.slice(2, top, top + height).slice(3, left, left + width);
      cuts.push_back(cut);
      cuts.push_back(at::flip(cut, {3}));
    }
  }
  const at::Tensor wanted = normalized(set, at::cat(cuts));
  for (const AugmentName name : {AugmentName::Flip, AugmentName::Crop, AugmentName::CropFlip}) {
    const Augment augment({.augment = name, .pad = pad}, set, 3);
    std::set<std::int64_t> seen;
    for (int epoch = 0; epoch < 400; ++epoch) {
      const Batch batch = augment.training(set.train, first(1), epoch);
      const at::Tensor near = (wanted - batch.inputs).abs().amax({1, 2, 3}) < 1e-5;
      ASSERT_EQ(near.sum().item<std::int64_t>(), 1)
          << static_cast<int>(name) << ", epoch " << epoch;
      seen.insert(near.to(at::kByte).argmax().item<std::int64_t>());
    }
    const std::size_t shifts = name == AugmentName::Flip ? 1 : windows * windows;
    EXPECT_EQ(seen.size(), shifts * (name == AugmentName::Crop ? 1 : 2)) << static_cast<int>(name);
    EXPECT_TRUE(seen.contains(2 * (pad * windows + pad))) << static_cast<int>(name);
  }
}

TEST_P(AugmentOf, ErasesOneBoxToZero) {
  const Dataset set = random_set(40, GetParam(), 16, 18);
  const Indices all = first(40);
  const at::Tensor plain = Augment({}, set, 1).training(set.train, all, 0).inputs;
  const at::Tensor erased = Augment({.erase = 1}, set, 1).training(set.train, all, 0).inputs;
  for (std::int64_t i = 0; i < 40; ++i) {
    const at::Tensor was = plain[i], is = erased[i];
    const at::Tensor rows = (was != is).any(2).any(0).nonzero();
    const at::Tensor columns = (was != is).any(1).any(0).nonzero();
    ASSERT_GT(rows.numel(), 0);
    const auto top = rows.min().item<std::int64_t>();
    const auto bottom = rows.max().item<std::int64_t>();
    const auto left = columns.min().item<std::int64_t>();
    const auto right = columns.max().item<std::int64_t>();
    at::Tensor expected = was.clone();
    expected.slice(1, top, bottom + 1).slice(2, left, right + 1).zero_();
    EXPECT_TRUE(at::equal(is, expected)) << "image " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, AugmentOf, ::testing::Values(1, 2, 3));

// What the pixels of a set of ones say about the boxes that were drawn.
struct Boxes {
  double count = 0, area = 0, log_ratio = 0, top = 0, left = 0;
  double least_area = 1, most_area = 0;
};

Boxes measure_boxes(double probability) {
  constexpr std::int64_t side = 64, examples = 200, epochs = 20;
  Dataset set = random_set(examples, 1, side, side);
  as_bytes(set.train).pixels = at::empty({examples, 1, side, side}, at::kByte);
  as_bytes(set.train).pixels.fill_(255);
  const Augment augment({.erase = probability}, set, 11);
  Boxes boxes;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const Batch batch = augment.training(set.train, first(examples), epoch);
    const float* value = batch.inputs.const_data_ptr<float>();
    for (std::int64_t i = 0; i < examples; ++i, value += side * side) {
      const float* end = value + side * side;
      const float* zero = std::find(value, end, 0.0f);
      if (zero == end) {
        continue;
      }
      const auto erased = static_cast<double>(std::count(value, end, 0.0f));
      const auto start = zero - value;
      const auto width =
          static_cast<double>(std::count(zero, value + (start / side + 1) * side, 0.0f));
      const double height = erased / width;
      const double share = erased / (side * side);
      boxes.count += 1;
      boxes.area += share;
      boxes.least_area = std::min(boxes.least_area, share);
      boxes.most_area = std::max(boxes.most_area, share);
      boxes.log_ratio += std::log(height / width);
      boxes.top += static_cast<double>(start / side) / (side - height);
      boxes.left += static_cast<double>(start % side) / (side - width);
    }
  }
  for (double* sum : {&boxes.area, &boxes.log_ratio, &boxes.top, &boxes.left}) {
    *sum /= boxes.count;
  }
  boxes.count /= examples * epochs;
  return boxes;
}

// 4000 boxes: area uniform in .02 .. .33 (standard error .0014), log ratio
// uniform in log .3 .. log 3.3 (.011) less the few that do not fit, places
// uniform (.005). Rounding to pixels moves each by about 1 %.
TEST(RandomErasing, Statistics) {
  const Boxes boxes = measure_boxes(1);
  EXPECT_EQ(boxes.count, 1);
  EXPECT_NEAR(boxes.area, 0.175, 0.006);
  EXPECT_GT(boxes.least_area, 0.017);
  EXPECT_LT(boxes.least_area, 0.023);
  EXPECT_GT(boxes.most_area, 0.32);
  EXPECT_LT(boxes.most_area, 0.34);
  EXPECT_NEAR(boxes.log_ratio, (std::log(0.3) + std::log(3.3)) / 2, 0.05);
  EXPECT_NEAR(boxes.top, 0.5, 0.025);
  EXPECT_NEAR(boxes.left, 0.5, 0.025);
}

TEST(RandomErasing, Probability) {
  // Standard error .007.
  EXPECT_NEAR(measure_boxes(0.25).count, 0.25, 0.03);
}

TEST(Augment, DependsOnSeedEpochAndExampleAlone) {
  const Dataset set = random_set(12, 3, 8, 10);
  const DataOptions options{.augment = AugmentName::CropFlip, .erase = 0.5};
  const Augment augment(options, set, 5);
  const at::Tensor all = augment.training(set.train, first(12), 3).inputs;
  for (std::int64_t i = 11; i >= 0; --i) {
    const Augment other(options, set, 5);
    const Indices one = {i};
    EXPECT_TRUE(at::equal(other.training(set.train, one, 3).inputs[0], all[i]));
  }
  EXPECT_FALSE(at::equal(augment.training(set.train, first(12), 4).inputs, all));
  EXPECT_FALSE(at::equal(Augment(options, set, 6).training(set.train, first(12), 3).inputs, all));
}

TEST(Augment, PadBeyondTheImageMayLeaveBlack) {
  const Dataset set = random_set(1, 3, 2, 4);
  const Augment augment({.augment = AugmentName::CropFlip, .pad = 50}, set, 5);
  at::Tensor black = at::empty({1, 3, 2, 4}, at::kByte);
  black.zero_();
  int all_black = 0;
  for (int epoch = 0; epoch < 50; ++epoch) {
    all_black +=
        at::allclose(augment.training(set.train, first(1), epoch).inputs, normalized(set, black));
  }
  EXPECT_GT(all_black, 40);
}

TEST(Augment, AnExampleOutOfRangeIsABug) {
  const Dataset set = random_set(3, 1, 4, 6);
  const Augment augment({}, set, 1);
  for (const std::int64_t index : {-1, 3}) {
    EXPECT_THROW(augment.training(set.train, Indices{index}, 0), std::logic_error);
  }
  EXPECT_THROW(augment.evaluation(set.train, 2, 4), std::logic_error);
  EXPECT_THROW(augment.evaluation(random_images(3, 3, 4, 6), 0, 1), std::logic_error);
}

}  // namespace
}  // namespace abtrain::data
