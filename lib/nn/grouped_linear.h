// Linear maps in which each slice of the features has its own slice of the weight, and linear maps
// that multiply in bf16 and sum in fp32. A weight's gradient is added directly to its grad(), if it
// has one; so is a bias's gradient in bf16 on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::nn {

// input: ... x I; weight: O x I/groups; bias: O, or undefined. Returns ... x O. The g-th O/groups
// output features come from the g-th I/groups input features and the g-th O/groups rows of the
// weight. In kBFloat16, parameters are fp32 and the input is fp32 or bf16; the result and all
// gradients are fp32 on the CPU and bf16 on a GPU. In any other type, all tensors have that type.
at::Tensor grouped_linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, std::int64_t groups,
    at::ScalarType type);

// Reorders features from the order (i, o, t), t running fastest, to (o, i, t), for `groups` values
// of i and of o. input: ... x (groups * groups * t), fp32, fp64 or bf16. It is its own inverse.
at::Tensor exchange_groups(const at::Tensor& input, std::int64_t groups);

// The factors of a weight (nn/weight.h). inner: grid r x I/grid; outer: O x r; rest: O x I, fp32 or
// bf16, without gradient, or undefined.
struct Factors {
  at::Tensor inner = {}, outer = {}, rest = {};
  double scale = 1;
  std::int64_t grid = 1;
};

// Applies both factors in one step: grouped_linear() with `inner`, exchange_groups(), the scale,
// and grouped_linear() with `outer`. If `rest` is defined, its product with the input is added;
// rest + outer * inner is never formed.
at::Tensor factored_linear(
    const at::Tensor& input, const Factors& factors, const at::Tensor& bias, at::ScalarType type);

}  // namespace abtrain::nn
