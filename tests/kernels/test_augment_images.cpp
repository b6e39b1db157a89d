#include "ops/augment_images.h"

#include <functional>

#include "base/random.h"
#include "op_test.h"
#include "ops/erased_box.h"

namespace abtrain::ops {
namespace {

struct ImageShape {
  std::int64_t channels, height, width;
};

constexpr Augmentation kAll{
    .crop = true, .pad = 4, .flip = true, .erase = 0.6, .seed = 3, .epoch = 2};

// Of 11 random images, without memory for the batch.
AugmentBatch batch_of(std::int64_t count, const ImageShape& shape) {
  constexpr std::int64_t kImages = 11;
  return {
      randint(0, 256, {kImages, shape.channels, shape.height, shape.width}, 5, at::kByte),
      randint(0, 1000, {kImages}, 6, at::kLong),
      randint(0, kImages, {count}, 7, at::kLong),
      randn(shape.channels, 256, 8),
      {},
      {}};
}

// Pixel by pixel, as the header says.
at::Tensor reference(const AugmentBatch& c, const Augmentation& how) {
  const std::int64_t height = c.pixels.size(2), width = c.pixels.size(3);
  at::Tensor out = at::empty({c.indices.size(0), height, width, c.pixels.size(1)});
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
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const std::int64_t from_y = y + down;
        const std::int64_t from_x = (mirrored ? width - 1 - x : x) + right;
        const bool inside = 0 <= from_y && from_y < height && 0 <= from_x && from_x < width;
        const bool erased =
            box.top <= y && y < box.top + box.height && box.left <= x && x < box.left + box.width;
        for (std::int64_t ch = 0; ch < out.size(3); ++ch) {
          to[b][y][x][ch] = erased ? 0 : table[ch][inside ? pixels[index][ch][from_y][from_x] : 0];
        }
      }
    }
  }
  return out;
}

void check_images(
    const Forms& forms, const ImageShape& shape, std::int64_t count, const Augmentation& how,
    at::ScalarType type, std::int64_t offset = 0) {
  SCOPED_TRACE(
      testing::Message() << count << " of " << shape.channels << "x" << shape.height << "x"
                         << shape.width << ", " << type << ", crop " << how.crop << ", pad "
                         << how.pad << ", flip " << how.flip << ", erase " << how.erase);
  const AugmentBatch batch = batch_of(count, shape);
  const auto [images, labels] = forms.same([&](const Form& form) {
    const std::array out{
        form.blank({count, shape.height, shape.width, shape.channels}, type),
        form.blank({count}, at::kLong)};
    augment_images(
        {form.of(batch.pixels, offset), form.of(batch.labels), form.of(batch.indices),
         form.of(batch.table), out[0].permute({0, 3, 1, 2}), out[1]},
        how);
    return out;
  });
  EXPECT_TRUE(images.equal(reference(batch, how).to(type)));
  EXPECT_TRUE(labels.equal(batch.labels.index_select(0, batch.indices)));
}

std::vector<Augmentation> all_choices() {
  std::vector<Augmentation> all;
  for (const auto& [crop, flip, erase, pad] :
       cases({false, true}, {false, true}, {0.0, 0.5, 1.0}, {0L, 3L, 40L})) {
    if (pad == 0 || crop) {
      all.push_back({crop, pad, flip, erase, 0xfedcba9876543210, pad + 1});
    }
  }
  return all;
}

ABT_OP_TEST(AugmentImages, EqualTheReferenceInAnySize) {
  std::vector<Augmentation> choices = {kAll};
  if (forms.on_gpu()) {
    const auto more = all_choices();
    choices.insert(choices.end(), more.begin(), more.end());
  }
  // Fast ones, odd ones, one too wide for the threads, two too large for shared
  // memory (by their pixels, by their table), single pixels.
  for (const ImageShape& shape :
       {ImageShape{3, 32, 32}, ImageShape{1, 28, 28}, ImageShape{1, 16, 8}, ImageShape{3, 5, 7},
        ImageShape{1, 7, 5}, ImageShape{2, 9, 4}, ImageShape{5, 3, 3}, ImageShape{1, 2, 1100},
        ImageShape{3, 140, 130}, ImageShape{50, 3, 3}, ImageShape{1, 1, 1}, ImageShape{3, 1, 1}}) {
    for (const std::int64_t count : {0L, forms.large(1, 5), forms.large(37, 0)}) {
      for (const Augmentation& how : choices) {
        check_images(forms, shape, count, how, at::kFloat);
        check_images(forms, shape, count, how, at::kBFloat16);
      }
    }
  }
}

ABT_OP_TEST(AugmentImages, EqualTheReferenceForEveryChoice) {
  for (const Augmentation& how : all_choices()) {
    for (const ImageShape& shape : {ImageShape{3, 32, 32}, {1, 28, 28}, {2, 9, 12}}) {
      check_images(forms, shape, 6, how, at::kBFloat16);
    }
  }
}

ABT_OP_TEST(AugmentImages, EqualTheReferenceForEverySeedAndEpoch) {
  for (const auto& [seed, epoch] : cases({0ul, 1ul, ~0ul}, {0L, 1L, 300L})) {
    Augmentation how = kAll;
    how.seed = seed;
    how.epoch = epoch;
    check_images(forms, {3, 32, 32}, 4, how, at::kFloat);
  }
}

// Large batches give several images to a block; the last one takes what is left.
ABT_OP_TEST(AugmentImages, EqualTheReferenceInEveryBatch) {
  for (const auto& [type, count] :
       cases({at::kFloat, at::kBFloat16}, {0L, 1L, 2L, 3L, 17L, forms.large(5000, 20)})) {
    check_images(forms, {3, 8, 8}, count, kAll, type);
    check_images(forms, {1, 28, 28}, count, kAll, type);
  }
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    check_images(forms, {3, 2, 8}, 3 * 1024 - 2, kAll, type);
    check_images(forms, {1, 2, 8}, 3 * 1024 - 2, kAll, type);
  }
  check_images(forms, {3, 2, 2}, 2 * 1024 + 1, kAll, at::kFloat);
}

ABT_OP_TEST(AugmentImages, EqualTheReferenceOnUnalignedPixels) {
  for (const auto& [offset] : cases({1L, 8L, 16L})) {
    check_images(forms, {3, 32, 32}, 3, kAll, at::kFloat, offset);
    check_images(forms, {1, 28, 28}, 3, kAll, at::kBFloat16, offset);
  }
}

TEST(AugmentImages, RefuseWhatDoesNotFit) {
  const auto expect_refused = [](const std::function<void(AugmentBatch&)>& spoil) {
    AugmentBatch c = batch_of(4, {3, 5, 6});
    c.images = at::empty({4, 3, 5, 6}, at::kFloat, at::MemoryFormat::ChannelsLast);
    c.image_labels = at::empty({4}, at::kLong);
    augment_images(c, {});
    spoil(c);
    EXPECT_REFUSED(augment_images(c, {}));
  };
  expect_refused([](AugmentBatch& c) { c.pixels = c.pixels.to(at::kFloat); });
  expect_refused([](AugmentBatch& c) { c.pixels = c.pixels.slice(3, 0, 5); });
  expect_refused([](AugmentBatch& c) { c.labels = c.labels.slice(0, 1); });
  expect_refused([](AugmentBatch& c) { c.indices = c.indices.slice(0, 1); });
  expect_refused([](AugmentBatch& c) { c.indices[2] = 11; });
  expect_refused([](AugmentBatch& c) { c.indices[2] = -1; });
  expect_refused([](AugmentBatch& c) { c.table = c.table.slice(0, 1).clone(); });
  expect_refused([](AugmentBatch& c) { c.images = c.images.contiguous(); });
  expect_refused([](AugmentBatch& c) { c.images = c.images.to(at::kHalf); });
  expect_refused([](AugmentBatch& c) { c.image_labels = c.image_labels.to(at::kInt); });
#ifdef ABTRAIN_EMULATED
  kernels::AugmentImages job{};
  job.element = kernels::Element::F16;  // for which there is no form
  EXPECT_NE(kernels::augment_images(job, nullptr), 0);
#endif
}

}  // namespace
}  // namespace abtrain::ops
