#include "data/file_batches.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "data/images/image_files.h"
#include "data/images/random_box.h"

namespace abtrain::data {

FileBatches::FileBatches(const DataOptions& options, const Dataset& dataset)
    : form_{options.image_size, options.resize, {}, {}},
      crop_scale_(options.crop_scale),
      threads_(options.decode_threads.value_or(dataset.decode_threads)) {
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) {
    form_.scale.push_back(1.0F / (255.0F * dataset.std[c]));
    form_.shift.push_back(-dataset.mean[c] / dataset.std[c]);
  }
}

at::Tensor FileBatches::take_images(std::int64_t count) const {
  const std::array sizes = {count, std::int64_t{3}, form_.side, form_.side};
  at::Tensor block;
  {
    const std::lock_guard lock(blocks_->mutex);
    std::erase_if(
        blocks_->tensors, [&](const at::Tensor& each) { return !each.sizes().equals(sizes); });
    if (!blocks_->tensors.empty()) {
      block = std::move(blocks_->tensors.back());
      blocks_->tensors.pop_back();
    }
  }
  if (!block.defined()) {
    block = empty_batch(count, 3, form_.side, form_.side).inputs;
  }
  return at::from_blob(
      block.mutable_data_ptr(), block.sizes(), block.strides(),
      [idle = blocks_, block](void*) {
        const std::lock_guard lock(idle->mutex);
        idle->tensors.push_back(block);
      },
      block.options());
}

std::unique_ptr<ImageReader> FileBatches::borrow_reader() const {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    return std::make_unique<ImageReader>(form_);
  }
  std::unique_ptr<ImageReader> reader = std::move(idle_.back());
  idle_.pop_back();
  return reader;
}

void FileBatches::give_back(std::unique_ptr<ImageReader> reader) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(reader));
}

bool FileBatches::write(
    ImageReader& reader, ImageFiles& files, std::int64_t file, std::int64_t index,
    const ops::Augmentation* how, float* out) const {
  if (files.is_damaged(file)) {
    return false;
  }
  try {
    files.read(file, reader.bytes());
    const ImageSize size = reader.open();
    if (how == nullptr) {
      reader.write_center(/*mirrored=*/false, out);
      return true;
    }
    Random random(
        how->seed, RandomPurpose::Augment, static_cast<std::uint32_t>(how->epoch),
        static_cast<std::uint32_t>(index));
    if (how->crop) {
      const Box box =
          draw_crop(random, size.height, size.width, crop_scale_.front(), crop_scale_.back());
      reader.write_box(box, how->flip && random.coin(), out);
    } else {
      reader.write_center(how->flip && random.coin(), out);
    }
    ops::erase_box(out, form_.side, 3, draw_erased(random, how->erase, form_.side, form_.side));
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::DamagedData) {
      throw;
    }
    files.add_damaged(file, error.what());
    return false;
  }
}

Batch FileBatches::batch(
    const ListedImages& images, std::span<const std::int64_t> indices,
    const ops::Augmentation* how) const {
  const std::int64_t count = std::ssize(indices);
  const Batch batch{take_images(count), at::empty({count}, at::kLong)};
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.labels.data_ptr<std::int64_t>();
  const std::int64_t numel = 3 * form_.side * form_.side;
  const auto* places = images.places.const_data_ptr<std::int64_t>();
  const auto* from = images.labels.const_data_ptr<std::int64_t>();
  const std::int64_t all = images.labels.size(0);
  std::vector<char> sound(indices.size());
  for_each_on_threads(static_cast<std::size_t>(threads_), indices.size(), [&](std::size_t i) {
    std::unique_ptr<ImageReader> reader = borrow_reader();
    float* const out = pixels + static_cast<std::int64_t>(i) * numel;
    char& done = sound[i];
    for (std::int64_t step = 0; !done && (step == 0 || how != nullptr); ++step) {
      ABT_CHECK(step < all, DamagedData, "all {} training images are damaged", with_commas(all));
      const std::int64_t taken = (indices[i] + step) % all;
      labels[i] = from[taken];
      done = write(*reader, *images.files, places[taken], indices[i], how, out);
    }
    give_back(std::move(reader));
  });
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!sound[static_cast<std::size_t>(i)]) {
      continue;
    }
    if (kept < i) {
      std::copy_n(pixels + i * numel, numel, pixels + kept * numel);
      labels[kept] = labels[i];
    }
    ++kept;
  }
  return {batch.inputs.narrow(0, 0, kept), batch.labels.narrow(0, 0, kept)};
}

}  // namespace abtrain::data
