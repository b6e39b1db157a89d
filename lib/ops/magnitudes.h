// Statistics of the magnitudes of each tensor of a table of blocks, from which
// levels and thresholds of codes are computed. u: the flat fp32 buffer of the
// table. Results: fp32, on u's device.
//
// CPU and GPU give the same bits. On CUDA the kernels are queued on this
// thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// One per tensor: the sum of |u|.
void sum_of_magnitudes(
    const at::Tensor& u,
    CodeBlocks& blocks,
    const at::Tensor& sums);

// One per tensor: the largest |u|, which is infinite if any element is not
// finite.
void largest_magnitude(
    const at::Tensor& u,
    CodeBlocks& blocks,
    const at::Tensor& largest);

// Two per tensor: the sum of u^2 and the sum of |u|.
void moments(const at::Tensor& u, CodeBlocks& blocks, const at::Tensor& sums);

}  // namespace abtrain::ops
