#include "data/file_batches.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "data/images/image_files.h"

namespace abtrain::data {
namespace {

// Returns false if the file is damaged, which is recorded.
bool write_file(
    ImageReader& reader, ImageFiles& files, std::int64_t file,
    const std::function<void(ImageSize)>& write) {
  if (files.is_damaged(file)) {
    return false;
  }
  try {
    files.read(file, reader.bytes());
    write(reader.open());
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::DamagedData) {
      throw;
    }
    files.add_damaged(file, error.what());
    return false;
  }
}

}  // namespace

FileBatches::FileBatches(const DataOptions& options, const Dataset& dataset)
    : form_{options.image_size, options.resize, {}, {}},
      threads_(std::max<std::int64_t>(1, options.decode_threads.value_or(1))) {
  for (std::size_t c = 0; c < dataset.mean.size(); ++c) {
    form_.scale.push_back(1.0F / (255.0F * dataset.std[c]));
    form_.shift.push_back(-dataset.mean[c] / dataset.std[c]);
  }
}

Batch FileBatches::empty_batch(std::int64_t count) const {
  return memory_.take(count, 3, form_.side, form_.side);
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

void FileBatches::for_each(
    std::int64_t count, const std::function<void(ImageReader&, std::int64_t)>& body) const {
  std::atomic<std::int64_t> next{0};
  run_on_threads(static_cast<std::size_t>(std::min(threads_, count)), [&] {
    try {
      std::unique_ptr<ImageReader> reader = borrow_reader();
      for (std::int64_t i = next++; i < count; i = next++) {
        body(*reader, i);
      }
      give_back(std::move(reader));
    } catch (...) {
      next = count;  // the other threads stop, too
      throw;
    }
  });
}

Batch FileBatches::training(
    const ListedImages& images, std::span<const std::int64_t> indices, const Write& write) const {
  const auto count = static_cast<std::int64_t>(indices.size());
  Batch batch = empty_batch(count);
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.labels.data_ptr<std::int64_t>();
  const std::int64_t numel = 3 * form_.side * form_.side;
  const auto* places = images.places.const_data_ptr<std::int64_t>();
  const auto* from = images.labels.const_data_ptr<std::int64_t>();
  const std::int64_t all = images.labels.size(0);
  for_each(count, [&](ImageReader& reader, std::int64_t i) {
    const std::int64_t index = indices[static_cast<std::size_t>(i)];
    for (std::int64_t step = 0;; ++step) {
      ABT_CHECK(step < all, DamagedData, "all {} training images are damaged", with_commas(all));
      const std::int64_t taken = (index + step) % all;
      if (write_file(reader, *images.files, places[taken], [&](ImageSize size) {
            write(reader, size, index, pixels + i * numel);
          })) {
        labels[i] = from[taken];
        return;
      }
    }
  });
  return batch;
}

Batch FileBatches::evaluation(
    const ListedImages& images, std::int64_t begin, std::int64_t end) const {
  Batch batch = empty_batch(end - begin);
  auto* pixels = batch.inputs.data_ptr<float>();
  auto* labels = batch.labels.data_ptr<std::int64_t>();
  const std::int64_t numel = 3 * form_.side * form_.side;
  const auto* places = images.places.const_data_ptr<std::int64_t>();
  const auto* from = images.labels.const_data_ptr<std::int64_t>();
  std::vector<char> sound(static_cast<std::size_t>(end - begin));
  for_each(end - begin, [&](ImageReader& reader, std::int64_t i) {
    labels[i] = from[begin + i];
    sound[static_cast<std::size_t>(i)] = write_file(
        reader, *images.files, places[begin + i],
        [&](ImageSize) { reader.write_center(/*mirrored=*/false, pixels + i * numel); });
  });
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < end - begin; ++i) {
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
