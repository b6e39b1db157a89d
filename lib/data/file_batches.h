// Batches from image files: several threads read, decode and resample, each
// example into its place. The same bits whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/dataset.h"
#include "data/image_reader.h"

namespace abtrain::data {

// Safe to use from several threads.
class FileBatches {
 public:
  FileBatches(const DataOptions& options, const Dataset& dataset);

  // Writes one example by its open reader; called by several threads at once.
  // `index` is that of the example asked for, also where another stands in.
  using Write = std::function<void(
      ImageReader& reader,
      JpegDecoder::Size size,
      std::int64_t index,
      float* out)>;

  // A damaged file gives way to the next one of the images that is not, with
  // its own label. Throws Error(DamagedData) when too many are damaged.
  Batch training(
      const Images& images,
      std::span<const std::int64_t> indices,
      const Write& write) const;
  // Examples begin .. end-1 without the damaged ones.
  Batch evaluation(const Images& images, std::int64_t begin, std::int64_t end)
      const;

 private:
  class Lent;
  Batch empty_batch(std::int64_t count) const;
  // `body` for 0 .. count-1, by all threads.
  void for_each(
      std::int64_t count,
      const std::function<void(ImageReader&, std::int64_t)>& body) const;

  ImageForm form_;
  int threads_;
  mutable BatchMemory memory_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ImageReader>> idle_;
};

}  // namespace abtrain::data
