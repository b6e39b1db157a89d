#include "kernels/images/augment_images.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "ops/augment_images.h"
#include "ops/augment_job.h"

namespace abtrain::kernels {
namespace {

struct Shape {
  std::int64_t channels, height, width;
};

class AugmentKernel : public testing::Test {
 protected:
  // Emulated kernel and CPU form on one batch of an own, random set.
  void expect_same(
      const Shape& shape, std::int64_t batch, const ops::Augmentation& how, at::ScalarType type,
      std::int64_t offset = 0) {
    const auto [channels, height, width] = shape;
    constexpr std::int64_t images = 11;
    at::Generator generator = at::detail::createCPUGenerator(5);
    const std::int64_t numel = channels * height * width;
    // An offset makes every address an odd one.
    const at::Tensor pixels = at::randint(256, {images * numel + offset}, generator, at::kByte)
                                  .narrow(0, offset, images * numel)
                                  .view({images, channels, height, width});
    const at::Tensor labels = at::randint(1000, {images}, generator, at::kLong);
    const at::Tensor indices = at::randint(images, {batch}, generator, at::kLong);
    const at::Tensor table = at::randn({channels, 256}, generator);
    const auto layout =
        channels > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const at::Tensor wanted = at::empty({batch, channels, height, width}, type, layout);
    const at::Tensor got = at::full_like(wanted, 77.0, {}, layout);
    const at::Tensor wanted_labels = at::empty({batch}, at::kLong);
    const at::Tensor got_labels = at::full({batch}, -1, at::kLong);
    ops::augment_images({pixels, labels, indices, table, wanted, wanted_labels}, how);
    const AugmentImages job =
        ops::augment_job({pixels, labels, indices, table, got, got_labels}, how);
    ASSERT_EQ(augment_images(job, nullptr), 0);
    EXPECT_TRUE(at::equal(got, wanted))
        << batch << " of " << channels << "x" << height << "x" << width << ", " << type << ", pad "
        << how.pad << ", erase " << how.erase;
    EXPECT_TRUE(at::equal(got_labels, wanted_labels));
  }
};

constexpr ops::Augmentation kAll{
    .crop = true, .pad = 4, .flip = true, .erase = 0.6, .seed = 3, .epoch = 2};

// Fast ones, odd ones, one too wide for the threads, two too large for shared
// memory (by their pixels, by their table), single pixels.
TEST_F(AugmentKernel, EqualsTheCpuFormToTheBitForAnySize) {
  for (const Shape& shape :
       {Shape{3, 32, 32}, Shape{1, 28, 28}, Shape{1, 16, 8}, Shape{3, 5, 7}, Shape{1, 7, 5},
        Shape{2, 9, 4}, Shape{5, 3, 3}, Shape{1, 2, 1100}, Shape{3, 140, 130}, Shape{50, 3, 3},
        Shape{1, 1, 1}, Shape{3, 1, 1}}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      expect_same(shape, 5, kAll, type);
    }
  }
}

TEST_F(AugmentKernel, EqualsTheCpuFormForEveryChoice) {
  for (const Shape& shape : {Shape{3, 32, 32}, Shape{1, 28, 28}}) {
    for (const bool crop : {false, true}) {
      for (const bool flip : {false, true}) {
        for (const double erase : {0.0, 1.0}) {
          for (const std::int64_t pad : {0, 3, 40}) {
            if (pad > 0 && !crop) {
              continue;
            }
            expect_same(
                shape, 6, {crop, pad, flip, erase, 0xfedcba9876543210, pad + 1}, at::kBFloat16);
          }
        }
      }
    }
  }
}

TEST_F(AugmentKernel, EqualsTheCpuFormForEverySeedAndEpoch) {
  for (const std::uint64_t seed : {0ull, 1ull, ~0ull}) {
    for (const std::int64_t epoch : {0, 1, 300}) {
      ops::Augmentation how = kAll;
      how.seed = seed;
      how.epoch = epoch;
      expect_same({3, 32, 32}, 4, how, at::kFloat);
    }
  }
}

TEST_F(AugmentKernel, EqualsTheCpuFormForEveryBatch) {
  for (const std::int64_t batch : {0, 1, 2, 3, 17}) {
    expect_same({3, 8, 8}, batch, kAll, at::kFloat);
    expect_same({1, 28, 28}, batch, kAll, at::kBFloat16);
  }
}

// Large batches give several images to a block; the last one takes what is
// left.
TEST_F(AugmentKernel, EqualsTheCpuFormWhereABlockTakesSeveralImages) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    expect_same({3, 2, 8}, 3 * 1024 - 2, kAll, type);
    expect_same({1, 2, 8}, 3 * 1024 - 2, kAll, type);
  }
  expect_same({3, 2, 2}, 2 * 1024 + 1, kAll, at::kFloat);
}

TEST_F(AugmentKernel, EqualsTheCpuFormOnUnalignedPixels) {
  for (const std::int64_t offset : {1, 8, 16}) {
    expect_same({3, 32, 32}, 3, kAll, at::kFloat, offset);
    expect_same({1, 28, 28}, 3, kAll, at::kBFloat16, offset);
  }
}

TEST_F(AugmentKernel, RefusesAnElementThatItHasNoFormFor) {
  AugmentImages job{};
  job.element = Element::F16;
  EXPECT_NE(augment_images(job, nullptr), 0);
}

}  // namespace
}  // namespace abtrain::kernels
