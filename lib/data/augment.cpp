#include "data/augment.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/file_mapping.h"
#include "data/arrays/array_set.h"
#include "data/file_batches.h"
#include "data/images/float_images.h"
#include "data/text/text_set.h"
#include "device/tensor_text.h"

namespace abtrain::data {
namespace {

at::Tensor as_tensor(std::span<const std::int64_t> indices) {
  // from_blob() takes a non-const pointer, but nothing writes through it.
  return at::from_blob(
      const_cast<std::int64_t*>(indices.data()), {static_cast<std::int64_t>(indices.size())},
      at::kLong);
}

Batch empty_like(const at::Tensor& pixels, std::int64_t count, const at::TensorOptions& options) {
  return empty_batch(count, pixels.size(1), pixels.size(2), pixels.size(3), options);
}

// Replaces the labels by the targets of a regression.
void put_targets(const at::Tensor& targets, const at::Tensor& indices, at::Tensor& labels) {
  if (labels.defined() && labels.scalar_type() == targets.scalar_type()) {
    at::index_select_out(labels, targets, 0, indices);
    return;
  }
  labels = at::index_select(targets, 0, indices);
}

// Writes one batch from bytes. `batch` must have tensors for the inputs and, if the labels are
// classes, for the labels.
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
    : how_{
          .crop = options.augment == AugmentName::Crop || options.augment == AugmentName::CropFlip,
          .pad = options.pad,
          .flip = options.augment == AugmentName::Flip || options.augment == AugmentName::CropFlip,
          .erase = options.erase,
          .seed = seed},
      context_(dataset.context),
      logits_(
          dataset.context > 0 && dataset.token_labels
              ? dataset.context * std::max(dataset.classes, dataset.vocabulary)
              : std::max<std::int64_t>(1, dataset.classes)),
      targets_(dataset.regression ? dataset.classes : 0),
      bytes_per_token_(
          std::holds_alternative<TextWindows>(dataset.train) ? options.bytes_per_token : 0),
      norm_(dataset.norm) {
  if (context_ > 0) {
    return;  // text is not augmented
  }
  ABT_ASSERT(
      !dataset.mean.empty() && dataset.std.size() == dataset.mean.size(),
      "{} has no mean and std for each channel", dataset.name);
  if (std::holds_alternative<ListedImages>(dataset.train) ||
      std::holds_alternative<ListedImages>(dataset.test)) {
    files_ = std::make_shared<FileBatches>(options, dataset);
  }
  table_ = normalized_bytes(dataset.mean, dataset.std);
}

ops::Augmentation Augment::augmentation(std::int64_t epoch) const {
  ops::Augmentation how = how_;
  how.epoch = epoch;
  return how;
}

Batch Augment::training(
    const Examples& examples, std::span<const std::int64_t> indices, std::int64_t epoch) const {
  const std::int64_t count = examples.size();
  for (const std::int64_t index : indices) {
    ABT_ASSERT(index >= 0 && index < count, "example {} of {}", index, count);
  }
  const ops::Augmentation how = augmentation(epoch);
  return batch(examples, indices, &how);
}

Batch Augment::evaluation(const Examples& examples, std::int64_t begin, std::int64_t end) const {
  check_range(begin, end, examples.size());
  std::vector<std::int64_t> indices(static_cast<std::size_t>(end - begin));
  std::iota(indices.begin(), indices.end(), begin);
  return batch(examples, indices, nullptr);
}

Batch Augment::batch(
    const Examples& examples, std::span<const std::int64_t> indices,
    const ops::Augmentation* how) const {
  Batch made = make_batch(examples, indices, how);
  check_mapped_files();
  return made;
}

Batch Augment::make_batch(
    const Examples& examples, std::span<const std::int64_t> indices,
    const ops::Augmentation* how) const {
  if (const auto* windows = std::get_if<TextWindows>(&examples)) {
    return text_batch(*windows, indices, context_);
  }
  if (const auto* rows = std::get_if<TokenRows>(&examples)) {
    return token_batch(*rows, indices);
  }
  if (const auto* list = std::get_if<ListedImages>(&examples)) {
    return files_->batch(*list, indices, how);
  }
  const ops::Augmentation change = how != nullptr ? *how : ops::Augmentation{};
  const at::Tensor all = as_tensor(indices);
  if (const auto* images = std::get_if<FloatImages>(&examples)) {
    Batch made = augment_values(*images, norm_, indices, change);
    if (images->targets.defined()) {
      put_targets(images->targets, all, made.labels);
    }
    return made;
  }
  const auto& images = std::get<ByteImages>(examples);
  Batch made = empty_like(images.pixels, all.size(0), at::kFloat);
  write_bytes({images, table_}, all, change, made);
  return made;
}

void Augment::training(
    const DeviceImages& images, const at::Tensor& indices, std::int64_t epoch, at::ScalarType type,
    Batch& batch) const {
  if (!batch.inputs.defined()) {
    batch = empty_like(images.pixels, indices.size(0), images.pixels.options().dtype(type));
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
