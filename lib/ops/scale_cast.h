// out = in * scale, rounded to out's dtype, in one pass over memory. It
// converts a gradient to 16 bits for the wire, and back.
//
// Flat tensors of equal length on one device, each fp32, fp16 or bf16. `out`
// may be `in`.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void scale_cast(const at::Tensor& in, float scale, const at::Tensor& out);

// The form for GPUs; it works on any device. One kernel multiplies in fp32 and casts as it stores.
// This takes a scale with a dimension: a scalar would not take part in LibTorch's type promotion,
// so 16-bit products would be rounded, and overflow, before they are stored in fp32.
void scale_cast_by_promotion(const at::Tensor& in, float scale, const at::Tensor& out);

}  // namespace abtrain::ops
