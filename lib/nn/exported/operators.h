// Which of PyTorch's operators an exported model may use. Files may come from anywhere. So an
// operator is allowed only if torch.export writes it for forward passes and, with
// argument_checks(), it never accesses memory out of bounds, whatever its arguments are
// (tests/fuzz/fuzz_operators.cpp).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <functional>
#include <vector>

namespace abtrain::nn {

bool is_allowed(const c10::FunctionSchema& schema);

// A check that the operator leaves to its caller. It takes all arguments and throws c10::Error, as
// the operator does in its own checks.
using ArgumentCheck = std::function<void(const torch::jit::Stack& arguments)>;
std::vector<ArgumentCheck> argument_checks(const c10::FunctionSchema& schema);
// Throws c10::Error if scaled_dot_product_attention cannot take these tensors. `grouped`: several
// query heads share one key head.
void check_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool grouped);

// Why operators that draw random numbers are refused.
inline constexpr const char* kDrawsNumbers =
    "it draws random numbers; only dropout, dropout in attention and stochastic depth by bernoulli_ "
    "may. If it has a dropout rate, set that to 0 and apply nn.Dropout; otherwise remove it";

}  // namespace abtrain::nn
