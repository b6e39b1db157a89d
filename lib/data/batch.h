// A batch in the form that the network takes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>

namespace abtrain::data {

struct Batch {
  // Images: B x C x H x W, float32, or bfloat16 on a GPU; channels-last if C > 1. Text and rows of
  // tokens: B x tokens, int64.
  at::Tensor inputs;
  // Classification: B, or B x tokens, int64; labels equal to kIgnoredLabel do not count.
  // Regression: B x K, float32.
  at::Tensor labels;
};

// The value that PyTorch's cross-entropy ignores.
inline constexpr std::int64_t kIgnoredLabel = -100;

// Returns an uninitialized batch of images. `options`: the images' dtype and device, and whether
// they are page-locked.
Batch empty_batch(
    std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width,
    const at::TensorOptions& options = at::kFloat);

}  // namespace abtrain::data
