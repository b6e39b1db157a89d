// The check that ops on flat buffers apply to each argument.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::ops {

// Requires a 1-D contiguous tensor of at least `numel` elements with this dtype
// and device. `what` names it in the error.
inline void check_flat(
    const at::Tensor& tensor, at::ScalarType type, std::int64_t numel, c10::Device device,
    const char* what) {
  ABT_ASSERT(
      tensor.dim() == 1 && tensor.is_contiguous() && tensor.scalar_type() == type &&
          tensor.numel() >= numel && tensor.device() == device,
      "{}: expected {} flat {} on {}, got {}{} on {}", what, numel, type, device,
      tensor.scalar_type(), tensor.sizes(), tensor.device());
}

}  // namespace abtrain::ops
