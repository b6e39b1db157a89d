// Linear maps of equal slices of the features, each by its own slice of the weight, and linear maps
// whose products take factors in bf16, with sums in fp32. The gradient of a weight that has a
// grad() is added there as it is computed; so is that of a bias in bf16 on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace abtrain::nn {

// input: ... x I; weight: O x I/groups; bias: O, or undefined. Returns ... x O, of which the g-th
// O/groups features are those of the g-th I/groups features of the input under the g-th O/groups
// rows of the weight. In kBFloat16 parameters are fp32, the input is fp32 or bf16, and on the CPU
// the result and all gradients are fp32 (on a GPU: bf16); otherwise all have this type.
at::Tensor grouped_linear(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, std::int64_t groups,
    at::ScalarType type);

// Features of i x o x s, ordered by i first, ordered by o first, for `groups` values of i and of o.
// input: ... x (groups * groups * s), contiguous in its last dimension. It is its own inverse.
at::Tensor exchange_groups(const at::Tensor& input, std::int64_t groups);

}  // namespace abtrain::nn
