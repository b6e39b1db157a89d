// A batch in the form that the network takes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <memory>

namespace abtrain::data {

struct Batch {
  // Images: B x C x H x W; float32, or bfloat16 on a GPU; channels-last if C >
  // 1. Text and rows of tokens: B x tokens, int64.
  at::Tensor inputs;
  // B, or B x tokens, int64, of which kIgnoredLabel does not count; of a
  // regression B x K, float32.
  at::Tensor labels;
};

// As in PyTorch's cross-entropy.
inline constexpr std::int64_t kIgnoredLabel = -100;

// Returns an uninitialized batch of images. `options`: dtype of the images,
// device, page-locked or not.
Batch empty_batch(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
    const at::TensorOptions& options = at::kFloat);

// Hands out batches in memory that earlier ones no longer use, because
// allocating and first touching a large block costs more than filling it. Keeps
// two blocks. Safe to use from several threads; batches may outlive this
// object.
class BatchMemory {
 public:
  BatchMemory();
  // Like empty_batch().
  Batch take(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width);

 private:
  struct Idle;
  std::shared_ptr<Idle> idle_;
};

}  // namespace abtrain::data
