#include "data/augment.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/arrays/array_set.h"
#include "data/file_batches.h"
#include "data/images/float_images.h"
#include "data/text/text_set.h"
#include "device/tensor_text.h"

namespace abtrain::data {
namespace {

constexpr std::int64_t largest_pad = 1024;

at::Tensor as_tensor(std::span<const std::int64_t> indices) {
  // from_blob() takes a non-const pointer, but nothing writes through it.
  return at::from_blob(
      const_cast<std::int64_t*>(indices.data()), {static_cast<std::int64_t>(indices.size())},
      at::kLong);
}

Batch empty_like(const at::Tensor& pixels, std::int64_t count, const at::TensorOptions& options) {
  return empty_batch(count, pixels.size(1), pixels.size(2), pixels.size(3), options);
}

// Puts the targets of a regression in place of labels.
void put_targets(const at::Tensor& targets, const at::Tensor& indices, at::Tensor& labels) {
  if (labels.defined() && labels.scalar_type() == targets.scalar_type()) {
    at::index_select_out(labels, targets, 0, indices);
    return;
  }
  at::Tensor made = at::index_select(targets, 0, indices);
  labels = labels.defined() && labels.is_pinned() ? made.pin_memory() : made;
}

// One batch from bytes. `batch` holds the images; if the labels are classes,
// the labels too.
void write_bytes(
    const DeviceImages& images, const at::Tensor& indices, const ops::Augmentation& how,
    Batch& batch) {
  const bool numbers = images.targets.defined();
  const at::Tensor labels = numbers ? at::empty_like(indices) : batch.labels;
  ops::augment_images(
      {images.pixels, images.labels, indices, images.table, batch.inputs, labels}, how);
  if (numbers) {
    put_targets(images.targets, indices, batch.labels);
  }
}

void check_range(std::int64_t begin, std::int64_t end, std::int64_t size) {
  ABT_ASSERT(
      0 <= begin && begin <= end && end <= size, "examples {} .. {} of {}", begin, end, size);
}

}  // namespace

Augment::Augment(const DataOptions& options, const Dataset& dataset, std::uint64_t seed)
    : options_(options),
      seed_(seed),
      crop_(options.augment == AugmentName::Crop || options.augment == AugmentName::CropFlip),
      flip_(options.augment == AugmentName::Flip || options.augment == AugmentName::CropFlip),
      context_(dataset.context),
      logits_(
          std::max<std::int64_t>(1, dataset.context) *
          std::max<std::int64_t>({1, dataset.classes, dataset.vocabulary})),
      targets_(dataset.regression ? dataset.classes : 0),
      norm_(dataset.norm) {
  if (context_ > 0) {
    return;  // nothing is done to a text
  }
  ABT_CHECK(
      !flip_ || dataset.flips, Config,
      "data.augment: '{}' flips images, which changes labels of {}; expected "
      "none or crop",
      crop_ ? "crop-flip" : "flip", dataset.name);
  ABT_CHECK(
      options.pad >= 0 && options.pad <= largest_pad, Config, "data.pad: expected 0 .. {}, got {}",
      largest_pad, options.pad);
  ABT_CHECK(
      options.erase >= 0 && options.erase <= 1, Config,
      "data.erase: expected a probability, 0 .. 1, got {}", options.erase);
  ABT_ASSERT(
      !dataset.mean.empty() && dataset.std.size() == dataset.mean.size(),
      "{} has no mean and std for each channel", dataset.name);
  if (std::holds_alternative<ListedImages>(dataset.train) ||
      std::holds_alternative<ListedImages>(dataset.test)) {
    files_ = std::make_shared<FileBatches>(options, dataset);
  }
  table_ = normalized_bytes(dataset.mean, dataset.std);
}

Random Augment::random(std::int64_t epoch, std::int64_t index) const {
  return Random(
      seed_, RandomPurpose::Augment, static_cast<std::uint32_t>(epoch),
      static_cast<std::uint32_t>(index));
}

Batch Augment::training_of_files(
    const ListedImages& images, std::span<const std::int64_t> indices, std::int64_t epoch) const {
  return files_->training(
      images, indices, [&](ImageReader& reader, ImageSize size, std::int64_t index, float* out) {
        const std::int64_t side = options_.image_size;
        Random random = this->random(epoch, index);
        if (crop_) {
          const Box box = draw_crop(
              random, size.height, size.width, options_.crop_scale.front(),
              options_.crop_scale.back());
          reader.write_box(box, flip_ && random.coin(), out);
        } else {
          reader.write_center(flip_ && random.coin(), out);
        }
        ops::erase_box(out, side, 3, draw_erased(random, options_.erase, side, side));
      });
}

ops::Augmentation Augment::augmentation(std::int64_t epoch) const {
  return {
      .crop = crop_,
      .pad = options_.pad,
      .flip = flip_,
      .erase = options_.erase,
      .seed = seed_,
      .epoch = epoch};
}

Batch Augment::training(
    const Examples& examples, std::span<const std::int64_t> indices, std::int64_t epoch,
    bool page_locked) const {
  const std::int64_t count = examples.size();
  for (const std::int64_t index : indices) {
    ABT_ASSERT(index >= 0 && index < count, "example {} of {}", index, count);
  }
  const auto* list = std::get_if<ListedImages>(&examples);
  if (list == nullptr) {
    return batch_in_memory(examples, indices, augmentation(epoch), page_locked);
  }
  Batch batch = training_of_files(*list, indices, epoch);
  return page_locked ? Batch{batch.inputs.pin_memory(), batch.labels.pin_memory()} : batch;
}

Batch Augment::evaluation(const Examples& examples, std::int64_t begin, std::int64_t end) const {
  check_range(begin, end, examples.size());
  if (const auto* list = std::get_if<ListedImages>(&examples)) {
    return files_->evaluation(*list, begin, end);
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return batch_in_memory(examples, indices, {}, /*page_locked=*/false);
}

Batch Augment::batch_in_memory(
    const Examples& examples, std::span<const std::int64_t> indices, const ops::Augmentation& how,
    bool page_locked) const {
  if (const auto* windows = std::get_if<TextWindows>(&examples)) {
    return text_batch(*windows, indices, context_, page_locked);
  }
  if (const auto* rows = std::get_if<TokenRows>(&examples)) {
    return token_batch(*rows, indices, page_locked);
  }
  if (const auto* images = std::get_if<FloatImages>(&examples)) {
    return batch_of_values(*images, indices, how, page_locked);
  }
  const auto& images = std::get<ByteImages>(examples);
  const at::Tensor all = as_tensor(indices);
  Batch batch = empty_like(
      images.pixels, all.size(0), at::TensorOptions(at::kFloat).pinned_memory(page_locked));
  write_bytes({images, table_}, all, how, batch);
  return batch;
}

Batch Augment::batch_of_values(
    const FloatImages& images, std::span<const std::int64_t> indices, const ops::Augmentation& how,
    bool page_locked) const {
  Batch batch = augment_values(images, norm_, indices, how, page_locked);
  if (images.targets.defined()) {
    put_targets(images.targets, as_tensor(indices), batch.labels);
  }
  return batch;
}

void Augment::training(
    const DeviceImages& images, const at::Tensor& indices, std::int64_t epoch, at::ScalarType type,
    Batch& batch) const {
  if (!batch.inputs.defined() || !batch.labels.defined()) {
    const Batch made =
        empty_like(images.pixels, indices.size(0), images.pixels.options().dtype(type));
    batch.inputs = batch.inputs.defined() ? batch.inputs : made.inputs;
    batch.labels = batch.labels.defined() ? batch.labels : made.labels;
  }
  ABT_ASSERT(
      batch.inputs.scalar_type() == type, "a batch of {}, expected {}", batch.inputs.scalar_type(),
      type);
  write_bytes(images, indices, augmentation(epoch), batch);
}

Batch Augment::evaluation(
    const DeviceImages& images, std::int64_t begin, std::int64_t end, at::ScalarType type) const {
  check_range(begin, end, images.size());
  const auto& pixels = images.pixels;
  Batch batch = empty_like(pixels, end - begin, pixels.options().dtype(type));
  write_bytes(images, at::arange(begin, end, pixels.options().dtype(at::kLong)), {}, batch);
  return batch;
}

}  // namespace abtrain::data
