// Which k of a tensor's numbers are the largest by their absolute value: among
// equal ones those of lower index, so that the choice is defined. NaN counts as
// larger than all numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::ops {

// values: flat, fp32 or bf16, fewer than 2^31. Their indices, ascending, int32;
// 0 <= k <= numel. On the CPU a pass that counts the keys' high bits and one
// that collects what may be among the k. On CUDA queued on this thread's
// current stream: the host waits for nothing.
at::Tensor select_largest(const at::Tensor& values, std::int64_t k);

// The form for CUDA, out of LibTorch's operators; on any device.
at::Tensor select_largest_by_operators(
    const at::Tensor& values,
    std::int64_t k);

}  // namespace abtrain::ops
