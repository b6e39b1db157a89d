// A batch as the network gets it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <memory>

namespace abtrain::data {

struct Batch {
  // B x C x H x W, float32, or on a GPU bfloat16; channels-last where C > 1.
  at::Tensor images;
  at::Tensor labels;  // B, int64
};

// Not yet written; `options`: type of the images, device, page-locked or not.
Batch empty_batch(
    std::int64_t count,
    std::int64_t channels,
    std::int64_t height,
    std::int64_t width,
    const at::TensorOptions& options = at::kFloat);

// Hands out batches in memory that earlier ones no longer use: to ask the
// system for a large piece and to touch it first costs more than to fill it.
// Keeps two pieces. Safe to use from several threads; batches may outlive it.
class BatchMemory {
 public:
  BatchMemory();
  // As empty_batch().
  Batch take(
      std::int64_t count,
      std::int64_t channels,
      std::int64_t height,
      std::int64_t width);

 private:
  struct Idle;
  std::shared_ptr<Idle> idle_;
};

}  // namespace abtrain::data
