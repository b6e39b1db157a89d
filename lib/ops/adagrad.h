// Steps of Adagrad with an l1 term (Duchi et al. 2011), on a flat block of
// parameters: composite mirror descent (QCMD of Xu et al., arXiv 2208.05631) and
// regularised dual averaging (QRDA), each a pass over memory.
//
//   s += g^2; H = delta + sqrt(s)
//   mirror descent:  x = soft(x - rate g / H, rate l1 / H)
//   dual averaging:  z += g; x = soft(start - rate z / H, rate t l1 / H)
//   soft(v, a) = sign(v) max(|v| - a, 0)
//
// The same bits on CPU and GPU; on CUDA queued on this thread's current stream,
// nothing is read back.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/code_blocks.h"

namespace abtrain::ops {

// Flat fp32 tensors of one length.
struct AdagradState {
  at::Tensor x, g, s;
  at::Tensor z;      // undefined: mirror descent
  at::Tensor start;  // x before the first step, written then; undefined: 0
};

// l1 (fp32): one number a tensor of `blocks`. rate (fp32 or fp64), steps (fp32,
// the steps with this one) and divisor (of g; may be undefined): scalars.
void adagrad_step(
    const AdagradState& state,
    CodeBlocks& blocks,
    const at::Tensor& l1,
    const at::Tensor& rate,
    const at::Tensor& steps,
    const at::Tensor& divisor,
    double delta);

}  // namespace abtrain::ops
