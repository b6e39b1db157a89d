// Turns images into network input: randomly crops, flips and erases, and normalizes. Leaves windows
// of a text and rows of tokens unchanged.
//
// Random numbers are counter-based, keyed by (seed, epoch, example index): in one epoch an example
// gets the same treatment whichever worker, thread or device handles it. Order: crop, flip,
// normalize, erase (erased pixels become 0, the mean). The operations follow torchvision's
// RandomCrop (black border), RandomHorizontalFlip and RandomErasing with their defaults. Image
// files get RandomResizedCrop or, without a random crop, Resize and CenterCrop. Safe to use from
// several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/batch.h"
#include "data/data_options.h"
#include "data/dataset.h"
#include "data/device_images.h"
#include "ops/augment_images.h"

namespace abtrain::data {

class FileBatches;

class Augment {
 public:
  Augment(const DataOptions& options, const Dataset& dataset, std::uint64_t seed);

  // Numbers to predict per example; 0 if the examples have labels.
  std::int64_t targets() const {
    return targets_;
  }
  // Average number of bytes of text per token; 0 if this is not a text.
  double bytes_per_token() const {
    return bytes_per_token_;
  }
  // The largest number of logits that an example can have.
  std::int64_t logits() const {
    return logits_;
  }
  // Returns a training batch of the examples `indices`. A damaged file is
  // replaced by the next example that is not damaged. Throws Error(DamagedData)
  // if too many are.
  Batch training(
      const Examples& examples, std::span<const std::int64_t> indices, std::int64_t epoch) const;
  // Returns examples begin .. end-1, normalized but not augmented. Damaged files are left out.
  Batch evaluation(const Examples& examples, std::int64_t begin, std::int64_t end) const;

  // Do the same for images in a device's memory. `indices` must be valid (not checked on a GPU).
  // `type` of the inputs: float32 or bfloat16. Queued on this thread's stream. training() writes
  // into the tensors of `batch`, or creates them if they are undefined.
  void training(
      const DeviceImages& images, const at::Tensor& indices, std::int64_t epoch,
      at::ScalarType type, Batch& batch) const;
  Batch evaluation(
      const DeviceImages& images, std::int64_t begin, std::int64_t end, at::ScalarType type) const;

 private:
  ops::Augmentation augmentation(std::int64_t epoch) const;
  // A null `how` means an evaluation. Throws Error(Io) if a mapped file could not be read.
  Batch batch(
      const Examples& examples, std::span<const std::int64_t> indices,
      const ops::Augmentation* how) const;
  Batch make_batch(
      const Examples& examples, std::span<const std::int64_t> indices,
      const ops::Augmentation* how) const;

  ops::Augmentation how_;     // augmentation() adds the epoch
  std::int64_t context_ = 0;  // tokens per window of a text or row of tokens; 0: images
  std::int64_t logits_ = 1;
  std::int64_t targets_ = 0;
  double bytes_per_token_ = 0;
  at::Tensor table_;                          // from normalized_bytes()
  Norm norm_;                                 // for FloatImages
  std::shared_ptr<const FileBatches> files_;  // for a data set of image files
};

}  // namespace abtrain::data
