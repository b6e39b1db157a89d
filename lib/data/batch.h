// A batch as the network gets it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::data {

struct Batch {
  at::Tensor images;  // B x C x H x W, float32; channels-last where C > 1
  at::Tensor labels;  // B, int64
};

// Not yet written.
Batch empty_batch(
    std::int64_t count,
    std::int64_t channels,
    std::int64_t height,
    std::int64_t width);

}  // namespace abtrain::data
