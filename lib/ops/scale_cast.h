// out = in * scale, rounded to out's dtype, in one pass over memory: how a
// gradient is put on the wire in 16 bits and taken off again.
//
// Flat tensors of one length on one device; fp32, fp16 or bf16 each. `out` may
// be `in`.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void scale_cast(const at::Tensor& in, float scale, const at::Tensor& out);

}  // namespace abtrain::ops
