// Batches from image files. Several threads read, decode and resample; each writes its examples in
// place. The bits do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/dataset.h"
#include "data/images/image_reader.h"
#include "ops/augment_images.h"

namespace abtrain::data {

// Safe to use from several threads.
class FileBatches {
 public:
  FileBatches(const DataOptions& options, const Dataset& dataset);

  // The examples at `indices`, augmented as `how` says. A damaged file is replaced by the next
  // undamaged image, with that image's label but the random numbers of the requested example. A
  // null `how` means an evaluation: whole images, and damaged files are left out. Throws
  // Error(DamagedData) when too many are damaged.
  Batch batch(
      const ListedImages& images, std::span<const std::int64_t> indices,
      const ops::Augmentation* how) const;

 private:
  // Blocks that no batch uses. A batch that outlives this class returns its block, too.
  struct IdleBlocks {
    std::mutex mutex;
    std::vector<at::Tensor> tensors;
  };
  // Readers are kept, with their buffers, for later use.
  std::unique_ptr<ImageReader> borrow_reader() const;
  void give_back(std::unique_ptr<ImageReader> reader) const;
  // Uninitialized images, if possible in a block of memory that no earlier batch uses any more:
  // allocating and first touching a large block costs more than filling it.
  at::Tensor take_images(std::int64_t count) const;
  // Writes example `index` or its replacement. Returns false if the file is damaged, which is
  // recorded.
  bool write(
      ImageReader& reader, ImageFiles& files, std::int64_t file, std::int64_t index,
      const ops::Augmentation* how, float* out) const;

  ImageForm form_;
  std::vector<double> crop_scale_;
  std::int64_t threads_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ImageReader>> idle_;
  const std::shared_ptr<IdleBlocks> blocks_ = std::make_shared<IdleBlocks>();
};

}  // namespace abtrain::data
