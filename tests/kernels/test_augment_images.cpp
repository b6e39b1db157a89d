#include "ops/augment_images.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <vector>

#include "kernel_test.h"

namespace abtrain::ops {
namespace {

struct ImageShape {
  std::int64_t channels, height, width;
};

constexpr Augmentation kAll{
    .crop = true, .pad = 4, .flip = true, .erase = 0.6, .seed = 3, .epoch = 2};

class ABT_KERNEL_SUITE(AugmentImages) : public KernelTest {
 protected:
  // One batch of an own, random set.
  static void expect_same_images(
      const ImageShape& shape, std::int64_t batch, const Augmentation& how, at::ScalarType type,
      std::int64_t offset = 0) {
    SCOPED_TRACE(
        testing::Message() << batch << " of " << shape.channels << "x" << shape.height << "x"
                           << shape.width << ", " << type << ", crop " << how.crop << ", pad "
                           << how.pad << ", flip " << how.flip << ", erase " << how.erase);
    constexpr std::int64_t images = 11;
    at::Generator generator = at::detail::createCPUGenerator(5);
    const std::int64_t numel = images * shape.channels * shape.height * shape.width;
    const at::Tensor bytes = at::randint(256, {numel + offset}, generator, at::kByte);
    const at::Tensor labels = at::randint(1000, {images}, generator, at::kLong);
    const at::Tensor indices = at::randint(images, {batch}, generator, at::kLong);
    const at::Tensor table = at::randn({shape.channels, 256}, generator);
    expect_same([&](const Form& form) {
      // An offset makes every address an odd one.
      const at::Tensor pixels = form.of(bytes)
                                    .narrow(0, offset, numel)
                                    .view({images, shape.channels, shape.height, shape.width});
      const at::Tensor out = form.blank({batch, shape.height, shape.width, shape.channels}, type);
      const at::Tensor labels_out = form.blank({batch}, at::kLong);
      augment_images(
          {pixels, form.of(labels), form.of(indices), form.of(table), out.permute({0, 3, 1, 2}),
           labels_out},
          how);
      return std::vector{out, labels_out};
    });
  }

  static std::vector<Augmentation> all_choices() {
    std::vector<Augmentation> all;
    for (const bool crop : {false, true}) {
      for (const bool flip : {false, true}) {
        for (const double erase : {0.0, 1.0}) {
          for (const std::int64_t pad : {0, 3, 40}) {
            if (pad == 0 || crop) {
              all.push_back({crop, pad, flip, erase, 0xfedcba9876543210, pad + 1});
            }
          }
        }
      }
    }
    return all;
  }
};

TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuToTheBitInAnySize) {
  std::vector<Augmentation> choices = {kAll};
  if (!kEmulated) {
    const auto more = all_choices();
    choices.insert(choices.end(), more.begin(), more.end());
  }
  // Fast ones, odd ones, one too wide for the threads, two too large for shared
  // memory (by their pixels, by their table), single pixels.
  for (const ImageShape& shape :
       {ImageShape{3, 32, 32}, ImageShape{1, 28, 28}, ImageShape{1, 16, 8}, ImageShape{3, 5, 7},
        ImageShape{1, 7, 5}, ImageShape{2, 9, 4}, ImageShape{5, 3, 3}, ImageShape{1, 2, 1100},
        ImageShape{3, 140, 130}, ImageShape{50, 3, 3}, ImageShape{1, 1, 1}, ImageShape{3, 1, 1}}) {
    for (const std::int64_t batch : {0L, large(1, 5), large(37, 0), large(5000, 0)}) {
      if (batch * shape.channels * shape.height * shape.width > 20'000'000) {
        continue;
      }
      for (const auto type : {at::kFloat, at::kBFloat16}) {
        for (const Augmentation& how : choices) {
          expect_same_images(shape, batch, how, type);
        }
      }
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuForEveryChoice) {
  for (const Augmentation& how : all_choices()) {
    expect_same_images({3, 32, 32}, 6, how, at::kBFloat16);
    expect_same_images({1, 28, 28}, 6, how, at::kBFloat16);
  }
}

TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuForEverySeedAndEpoch) {
  for (const std::uint64_t seed : {0ull, 1ull, ~0ull}) {
    for (const std::int64_t epoch : {0, 1, 300}) {
      Augmentation how = kAll;
      how.seed = seed;
      how.epoch = epoch;
      expect_same_images({3, 32, 32}, 4, how, at::kFloat);
    }
  }
}

TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuInEveryBatch) {
  for (const std::int64_t batch : {0, 1, 2, 3, 17}) {
    expect_same_images({3, 8, 8}, batch, kAll, at::kFloat);
    expect_same_images({1, 28, 28}, batch, kAll, at::kBFloat16);
  }
}

// Large batches give several images to a block; the last one takes what is
// left.
TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuWhereABlockTakesSeveral) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    expect_same_images({3, 2, 8}, 3 * 1024 - 2, kAll, type);
    expect_same_images({1, 2, 8}, 3 * 1024 - 2, kAll, type);
  }
  expect_same_images({3, 2, 2}, 2 * 1024 + 1, kAll, at::kFloat);
}

TEST_F(ABT_KERNEL_SUITE(AugmentImages), EqualTheCpuOnUnalignedPixels) {
  for (const std::int64_t offset : {1, 8, 16}) {
    expect_same_images({3, 32, 32}, 3, kAll, at::kFloat, offset);
    expect_same_images({1, 28, 28}, 3, kAll, at::kBFloat16, offset);
  }
}

#ifdef ABTRAIN_EMULATED
TEST_F(ABT_KERNEL_SUITE(AugmentImages), RefuseAnElementThatTheyHaveNoFormFor) {
  kernels::AugmentImages job{};
  job.element = kernels::Element::F16;
  EXPECT_NE(kernels::augment_images(job, nullptr), 0);
}
#endif

}  // namespace
}  // namespace abtrain::ops
