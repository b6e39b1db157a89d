// A linear map whose products take factors in bf16, with sums in fp32. On the CPU the activations
// and all gradients stay in fp32; on a GPU the result is in bf16. The gradient of a weight that has
// a grad() is added there in fp32 as it is computed; so is that of a bias on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::nn {

// input: ... x I, fp32 or bf16; weight: O x I, fp32; bias: O, fp32, or undefined. Returns ... x O,
// fp32 (GPU: bf16).
at::Tensor bf16_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace abtrain::nn
