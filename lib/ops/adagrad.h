// Adagrad steps with an l1 term (Duchi et al. 2011) on a flat buffer of parameters: composite
// mirror descent (QCMD of Xu et al., arXiv 2208.05631) and regularized dual averaging (QRDA). Each
// is one pass over memory.
//
//   s += g^2; H = delta + sqrt(s)
//   mirror descent:  x = soft(x - rate g / H, rate l1 / H)
//   dual averaging:  z += g; x = soft(start - rate z / H, rate t l1 / H)
//   soft(v, a) = sign(v) max(|v| - a, 0)
//
// CPU and GPU results are bit-identical. On CUDA the kernel is queued on this thread's current
// stream, and nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// Flat fp32 tensors of equal length.
struct AdagradState {
  at::Tensor x, g, s;
  at::Tensor z;      // undefined selects mirror descent
  at::Tensor start;  // x before the first step, saved by that step; undefined means 0
};

// l1 (fp32): one value per tensor of `blocks`. rate (fp32 or fp64), steps (fp32; the number of this
// step, from 1) and divisor (divides g; may be undefined) are scalars.
void adagrad_step(
    const AdagradState& state, CodeBlocks& blocks, const at::Tensor& l1, const at::Tensor& rate,
    const at::Tensor& steps, const at::Tensor& divisor, double delta);

}  // namespace abtrain::ops
