// out = in * scale, rounded to out's dtype, in one pass over memory. It
// converts a gradient to 16 bits for the wire, and back.
//
// Flat tensors of equal length on one device, each fp32, fp16 or bf16. `out`
// may be `in`.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void scale_cast(const at::Tensor& in, float scale, const at::Tensor& out);

}  // namespace abtrain::ops
