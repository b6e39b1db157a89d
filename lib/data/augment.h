// Turns bytes into network input: pad-crop, flip, normalise, random erasing.
//
// Random numbers are counter-based, keyed by (seed, epoch, example index): an
// example gets the same treatment in an epoch whichever worker or thread takes
// it. Order: crop, flip, normalise, erase (erased pixels become 0, the mean).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "data/data_options.h"
#include "data/dataset.h"

namespace abtrain::data {

struct Batch {
  at::Tensor images;  // B x C x H x W, float32; channels-last where C > 1
  at::Tensor labels;  // B, int64
};

class Augment {
 public:
  // Throws Error(Config) for an unknown name or a flip on a set where flips
  // change labels.
  Augment(const DataOptions& options, const Dataset& dataset, std::uint64_t seed);

  // Training batch of the examples `indices`.
  Batch training(
      const Images& images,
      std::span<const std::int64_t> indices,
      std::int64_t epoch) const;
  // Normalised only: examples begin .. end-1.
  Batch evaluation(
      const Images& images, std::int64_t begin, std::int64_t end) const;

 private:
  DataOptions options_;
  std::uint64_t seed_;
  bool crop_ = false;
  bool flip_ = false;
  // Normalised value of each byte, a channel: C x 256.
  std::vector<float> table_;
};

}  // namespace abtrain::data
