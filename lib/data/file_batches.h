// Batches from image files: several threads read, decode and resample, each
// writing its examples in place. The bits do not depend on the number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/dataset.h"
#include "data/images/image_reader.h"

namespace abtrain::data {

// Safe to use from several threads.
class FileBatches {
 public:
  FileBatches(const DataOptions& options, const Dataset& dataset);

  // Writes one example with its open reader; called by several threads at once.
  // `index` is that of the requested example, even if another stands in for it.
  using Write =
      std::function<void(ImageReader& reader, ImageSize size, std::int64_t index, float* out)>;

  // A damaged file is replaced by the next image that is not damaged, with its
  // own label. Throws Error(DamagedData) when too many are damaged.
  Batch training(
      const ListedImages& images, std::span<const std::int64_t> indices, const Write& write) const;
  // Returns examples begin .. end-1 without the damaged ones.
  Batch evaluation(const ListedImages& images, std::int64_t begin, std::int64_t end) const;

 private:
  // Readers are kept, with their buffers, for later use.
  std::unique_ptr<ImageReader> borrow_reader() const;
  void give_back(std::unique_ptr<ImageReader> reader) const;
  Batch empty_batch(std::int64_t count) const;
  // Calls `body` for 0 .. count-1 on all threads.
  void for_each(
      std::int64_t count, const std::function<void(ImageReader&, std::int64_t)>& body) const;

  ImageForm form_;
  std::int64_t threads_;
  mutable BatchMemory memory_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ImageReader>> idle_;
};

}  // namespace abtrain::data
