// Selects the k elements of a tensor with the largest magnitude. Among equal
// magnitudes those with lower indices are taken, so the choice is well defined.
// NaN counts as larger than every number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

// values: flat, fp32 or bf16, fewer than 2^31 elements. Returns the indices, int32, ascending; 0 <=
// k <= numel. On the CPU, one pass counts the high bits of the magnitudes and another collects the
// candidates. On CUDA the work is queued on this thread's current stream; the host does not wait.
at::Tensor select_largest(const at::Tensor& values, std::int64_t k);

// How select_largest() works on CUDA, by LibTorch operators (possible on any device).
at::Tensor select_largest_by_operators(const at::Tensor& values, std::int64_t k);

}  // namespace abtrain::ops
