// Linear maps in bf16 and the flat gradients of a block.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "nn/grouped_linear.h"
#include "optim/gradient_hooks.h"
#include "optim/parameter_block.h"

namespace abtrain::methods {
namespace {

// The flat gradients take the sum over passes, and their hooks run in each.
TEST(Bf16Gradients, AddsToTheGradientThatIsThere) {
  for (const bool by_rows : {true, false}) {
    at::Tensor w = by_rows ? at::randn({8, 16}) : at::randn({16, 8}).t();
    optim::ParameterBlock block({{"w", &w}}, true, 0);
    int calls = 0;
    const optim::GradientHooks hooks(block, [&](std::size_t) { ++calls; });
    const at::Tensor x = at::randn({5, 16});
    block.zero_gradients();
    for (int pass = 1; pass <= 2; ++pass) {
      const at::Tensor y = nn::grouped_linear(x, w, {}, 1, at::kBFloat16);
      y.backward(at::ones_like(y));
      EXPECT_EQ(calls, pass);
      const at::Tensor wanted = pass * x.to(at::kBFloat16).to(at::kFloat).sum(0).expand({8, 16});
      EXPECT_LT((w.grad() - wanted).abs().max().item<double>(), 1e-5);
    }
    EXPECT_EQ(w.grad().data_ptr(), block.gradients().data_ptr());
  }
}

}  // namespace
}  // namespace abtrain::methods
