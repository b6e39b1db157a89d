// out = in * scale, rounded to out's dtype, in one pass over memory. It
// converts a gradient to 16 bits for the wire, and back.
//
// Flat tensors of equal length on one device, each fp32, fp16 or bf16. `out`
// may be `in`.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void scale_cast(const at::Tensor& in, float scale, const at::Tensor& out);

// How scale_cast() works on a GPU (possible on any device): one kernel multiplies in fp32 and casts
// as it stores. For this, the scale is a tensor with a dimension. LibTorch's type promotion ignores
// scalars, so with a scalar, products of 16-bit tensors would be rounded, and could overflow,
// before they are stored in fp32.
void scale_cast_by_promotion(const at::Tensor& in, float scale, const at::Tensor& out);

}  // namespace abtrain::ops
