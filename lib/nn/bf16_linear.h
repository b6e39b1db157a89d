// A linear map on the CPU whose products take factors in bf16. Their sums, the activations and all
// gradients stay in fp32; a weight's gradient is added to weight.grad() as it is computed.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::nn {

// input: ... x I, fp32 or bf16; weight: O x I, fp32; bias: O, fp32, or undefined. Returns ... x O,
// fp32.
at::Tensor bf16_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace abtrain::nn
