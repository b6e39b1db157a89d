// Batches from image files. Several threads read, decode, resample and write examples into the
// batch, which is bit-identical for any number of threads.
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

  // Returns the examples at `indices`, augmented as `how` says. A damaged file is replaced by the
  // next undamaged image, with that image's label but the random numbers of the requested example.
  // A null `how` means an evaluation: Resize and CenterCrop, and damaged files are left out. Throws
  // Error(DamagedData) when too many are damaged.
  Batch batch(
      const ListedImages& images, std::span<const std::int64_t> indices,
      const ops::Augmentation* how) const;

 private:
  // Memory blocks that no batch uses. Batches co-own this object, so that they can return their
  // blocks even after the FileBatches object is gone.
  struct IdleBlocks {
    std::mutex mutex;
    std::vector<at::Tensor> tensors;
  };
  // borrow_reader() returns an idle reader, or a new one. give_back() keeps it, with its buffers.
  std::unique_ptr<ImageReader> borrow_reader() const;
  void give_back(std::unique_ptr<ImageReader> reader) const;
  // Returns uninitialized images, if possible in an idle block: allocating and first touching a
  // large block costs more than filling it.
  at::Tensor take_images(std::int64_t count) const;
  // Writes the image `file`, with the random numbers of example `index`. If it is damaged, records
  // that and returns false.
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
