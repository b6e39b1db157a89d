// Which of PyTorch's operators an exported model may use. A file may come from anywhere, so only
// those are allowed that torch.export writes for forward passes and that check what they read and
// write, whatever their arguments are (tests/fuzz/fuzz_operators.cpp).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

#include <functional>
#include <vector>

namespace abtrain::nn {

bool is_allowed(const c10::FunctionSchema& schema);

// Checks that the operator leaves to its caller. Each takes all arguments and throws c10::Error, as
// the operator does where it checks.
using ArgumentCheck = std::function<void(const torch::jit::Stack& arguments)>;
std::vector<ArgumentCheck> argument_checks(const c10::FunctionSchema& schema);
// That of scaled_dot_product_attention; `grouped`: several heads of queries share one of keys.
void check_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool grouped);

// Why others are refused.
inline constexpr const char* kDrawsNumbers =
    "it draws random numbers; only dropout, dropout in attention and stochastic depth by bernoulli_ "
    "may. If it has a dropout rate, set that to 0 and apply nn.Dropout; otherwise remove it";

}  // namespace abtrain::nn
