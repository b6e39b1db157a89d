// Turns images into network input: crop, flip, normalise, random erasing.
//
// Random numbers are counter-based, keyed by (seed, epoch, example index): an
// example gets the same treatment in an epoch whichever worker, thread or
// device takes it. Order: crop, flip, normalise, erase (erased pixels become 0,
// the mean). As torchvision's RandomCrop (black border), RandomHorizontalFlip
// and RandomErasing with their defaults; of image files, RandomResizedCrop,
// else Resize and CenterCrop. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "data/batch.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "data/random_box.h"
#include "ops/augment_images.h"

namespace abtrain::data {

class FileBatches;

class Augment {
 public:
  // Throws Error(Config) for an unknown name, a flip on a set where flips
  // change labels, or a pad or probability out of range.
  Augment(
      const DataOptions& options,
      const Dataset& dataset,
      std::uint64_t seed);

  // Training batch of the examples `indices`. In place of a damaged file
  // stands the next example that is not. Throws Error(DamagedData) where too
  // many are. `page_locked`: in such memory, from which a GPU copies by itself.
  Batch training(
      const Images& images,
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      bool page_locked = false) const;
  // Normalised only: examples begin .. end-1, less the damaged files.
  Batch evaluation(const Images& images, std::int64_t begin, std::int64_t end)
      const;

  // The same from images on a device, `indices` among them (not checked on a
  // GPU), as `type`: float32 or bfloat16. Queued on this thread's stream.
  // Writes into the tensors of `batch`, or makes those that it lacks.
  void training(
      const DeviceImages& images,
      const at::Tensor& indices,
      std::int64_t epoch,
      at::ScalarType type,
      Batch& batch) const;
  Batch evaluation(
      const DeviceImages& images,
      std::int64_t begin,
      std::int64_t end,
      at::ScalarType type) const;

 private:
  Random random(std::int64_t epoch, std::int64_t index) const;
  ops::Augmentation augmentation(std::int64_t epoch) const;
  // Empty where the example is left whole.
  Box draw_erased_or_none(
      Random& random,
      std::int64_t height,
      std::int64_t width) const;
  Batch training_of_files(
      const Images& images,
      std::span<const std::int64_t> indices,
      std::int64_t epoch) const;

  DataOptions options_;
  std::uint64_t seed_;
  bool crop_ = false;
  bool flip_ = false;
  std::int64_t channels_ = 0;
  at::Tensor table_;                          // of normalised_bytes()
  Norm norm_;                                 // of images that are values
  std::shared_ptr<const FileBatches> files_;  // of a set of files
};

}  // namespace abtrain::data
