// Turns bytes into network input: pad-crop, flip, normalise, random erasing.
//
// Random numbers are counter-based, keyed by (seed, epoch, example index): an
// example gets the same treatment in an epoch whichever worker or thread takes
// it. Order: crop, flip, normalise, erase (erased pixels become 0, the mean).
// As torchvision's RandomCrop (black border), RandomHorizontalFlip and
// RandomErasing with their defaults. Safe to use from several threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "data/data_options.h"
#include "data/dataset.h"

namespace abtrain::data {

struct Batch {
  at::Tensor images;  // B x C x H x W, float32; channels-last where C > 1
  at::Tensor labels;  // B, int64
};

class Augment {
 public:
  // Throws Error(Config) for an unknown name, a flip on a set where flips
  // change labels, or a pad or probability out of range.
  Augment(
      const DataOptions& options,
      const Dataset& dataset,
      std::uint64_t seed);

  // Training batch of the examples `indices`.
  Batch training(
      const Images& images,
      std::span<const std::int64_t> indices,
      std::int64_t epoch) const;
  // Normalised only: examples begin .. end-1.
  Batch evaluation(const Images& images, std::int64_t begin, std::int64_t end)
      const;

 private:
  DataOptions options_;
  std::uint64_t seed_;
  bool crop_ = false;
  bool flip_ = false;
  std::int64_t channels_ = 0;
  // Normalised value of each byte, a channel: C x 256.
  std::vector<float> table_;
};

}  // namespace abtrain::data
