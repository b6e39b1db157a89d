// Statistics of the magnitudes of each tensor of a table of blocks. Gradient compression computes
// the levels and thresholds of its codes from them. CPU and GPU results are bit-identical. On CUDA
// the kernels are queued on this thread's current stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/blocks/magnitudes.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

using kernels::Statistic;

// u: the table's flat fp32 buffer. results: fp32, kernels::values_of(statistic) per tensor. cuts:
// for Above, fp32, one per tensor; if undefined, all |u| count.
void magnitudes(
    const at::Tensor& u, CodeBlocks& blocks, Statistic statistic, const at::Tensor& results,
    const at::Tensor& cuts = {});

}  // namespace abtrain::ops
