// GELU in its tanh form (Hendrycks and Gimpel 2016, arXiv:1606.08415):
// y = x s(x), s(x) = (1 + tanh(k (x + 0.044715 x^3))) / 2, k = sqrt(2 / pi).
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::nn {

// x: any shape and type. For fp32 on the CPU, one pass computes y and, if a gradient will be
// needed, dy/dx, which is kept instead of x. Both are within 2e-6 of the formula, relative to
// max(1, |y|).
at::Tensor gelu_tanh(const at::Tensor& x);

}  // namespace abtrain::nn
