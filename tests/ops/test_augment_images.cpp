#include "ops/augment_images.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "ops/erased_box.h"

namespace abtrain::ops {
namespace {

AugmentBatch make_case(
    std::int64_t batch, std::int64_t channels, std::int64_t height, std::int64_t width,
    at::ScalarType type) {
  constexpr std::int64_t kImages = 50;
  at::Generator generator = at::detail::createCPUGenerator(3);
  return {
      at::randint(256, {kImages, channels, height, width}, generator, at::kByte),
      at::randint(1000, {kImages}, generator, at::kLong),
      at::randint(kImages, {batch}, generator, at::kLong),
      at::randn({channels, 256}, generator),
      at::empty(
          {batch, channels, height, width}, type,
          channels > 1 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous),
      at::empty({batch}, at::kLong)};
}

// Pixel by pixel, as the header says.
at::Tensor reference(const AugmentBatch& c, const Augmentation& how) {
  const std::int64_t height = c.pixels.size(2), width = c.pixels.size(3);
  at::Tensor out = at::empty(c.images.sizes(), at::kFloat);
  const auto pixels = c.pixels.accessor<std::uint8_t, 4>();
  const auto table = c.table.accessor<float, 2>();
  auto to = out.accessor<float, 4>();
  for (std::int64_t b = 0; b < out.size(0); ++b) {
    const std::int64_t index = c.indices[b].item<std::int64_t>();
    Random random(
        how.seed, RandomPurpose::Augment, static_cast<std::uint32_t>(how.epoch),
        static_cast<std::uint32_t>(index));
    std::int64_t down = 0, right = 0;
    if (how.crop) {
      const auto choices = static_cast<std::uint32_t>(2 * how.pad + 1);
      down = random.below(choices) - how.pad;
      right = random.below(choices) - how.pad;
    }
    const bool mirrored = how.flip && random.coin();
    Box box;
    if (how.erase > 0 && random.uniform() < how.erase) {
      box = kernels::draw_erased_box(random, height, width);
    }
    for (std::int64_t ch = 0; ch < out.size(1); ++ch) {
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t from_y = y + down;
          const std::int64_t from_x = (mirrored ? width - 1 - x : x) + right;
          const bool inside = 0 <= from_y && from_y < height && 0 <= from_x && from_x < width;
          const bool erased =
              box.top <= y && y < box.top + box.height && box.left <= x && x < box.left + box.width;
          to[b][ch][y][x] = erased ? 0 : table[ch][inside ? pixels[index][ch][from_y][from_x] : 0];
        }
      }
    }
  }
  return out;
}

const std::vector<Augmentation> kChoices = {
    {},
    {.crop = true, .pad = 0},
    {.crop = true, .pad = 3, .seed = 9},
    {.flip = true, .epoch = 4},
    {.erase = 1, .seed = ~0ull},
    {.crop = true, .pad = 40, .flip = true, .erase = 0.5, .seed = 2, .epoch = 7},
    {.crop = true, .pad = 4, .flip = true, .erase = 0.5, .seed = 2, .epoch = 7}};

TEST(AugmentImages, EqualsTheReferenceToTheBit) {
  for (const std::int64_t channels : {1, 2, 3}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const std::int64_t batch : {0, 1, 20}) {
        for (const Augmentation& how : kChoices) {
          const AugmentBatch c = make_case(batch, channels, 9, 12, type);
          augment_images(c, how);
          EXPECT_TRUE(at::equal(c.images, reference(c, how).to(type)))
              << channels << " channels, " << type << ", pad " << how.pad;
          EXPECT_TRUE(at::equal(c.image_labels, c.labels.index_select(0, c.indices)));
        }
      }
    }
  }
}

TEST(AugmentImages, RefusesWhatDoesNotFit) {
  const auto expect_refused = [](const std::function<void(AugmentBatch&)>& spoil) {
    AugmentBatch c = make_case(4, 3, 5, 6, at::kFloat);
    augment_images(c, {});
    spoil(c);
    EXPECT_THROW(augment_images(c, {}), std::logic_error);
  };
  expect_refused([](AugmentBatch& c) { c.pixels = c.pixels.to(at::kFloat); });
  expect_refused([](AugmentBatch& c) { c.pixels = c.pixels.slice(3, 0, 5); });
  expect_refused([](AugmentBatch& c) { c.labels = c.labels.slice(0, 1); });
  expect_refused([](AugmentBatch& c) { c.indices = c.indices.slice(0, 1); });
  expect_refused([](AugmentBatch& c) { c.indices[2] = 50; });
  expect_refused([](AugmentBatch& c) { c.indices[2] = -1; });
  expect_refused([](AugmentBatch& c) { c.table = c.table.slice(0, 1).clone(); });
  expect_refused([](AugmentBatch& c) { c.images = c.images.contiguous(); });
  expect_refused([](AugmentBatch& c) { c.images = c.images.to(at::kHalf); });
  expect_refused([](AugmentBatch& c) { c.image_labels = c.image_labels.to(at::kInt); });
}

}  // namespace
}  // namespace abtrain::ops
