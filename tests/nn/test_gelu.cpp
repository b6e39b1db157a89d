// GELU in one pass, beside its formula in float64 and LibTorch's.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nn/gelu.h"

namespace abtrain::nn {
namespace {

// The largest difference relative to max(1, |wanted|).
double gelu_error(const at::Tensor& got, const at::Tensor& wanted) {
  return ((got.to(at::kDouble) - wanted).abs() / wanted.abs().clamp_min(1)).max().item().toDouble();
}

TEST(Gelu, IsItsFormulaAndSlopeInFloat64) {
  // More elements than one thread takes, and no multiple of a vector's lanes.
  const at::Tensor x = at::linspace(-12, 12, 40'003).requires_grad_();
  const at::Tensor exact = x.detach().to(at::kDouble).requires_grad_();
  const at::Tensor y = gelu_tanh(x);
  const at::Tensor wanted = at::gelu(exact, "tanh");
  EXPECT_LT(gelu_error(y.detach(), wanted.detach()), 5e-7);
  const at::Tensor weights = at::linspace(0.5, 2, x.numel());
  y.backward(weights);
  wanted.backward(weights.to(at::kDouble));
  EXPECT_LT(gelu_error(x.grad(), exact.grad()), 2e-6);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(gelu_tanh(x), y));
  EXPECT_TRUE(at::equal(gelu_tanh(x.view({-1, 1}).t()).view({-1}), y));
}

TEST(Gelu, KnowsItsEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::linspace(-100, 100, 3);
  const at::Tensor y = gelu_tanh(x);
  EXPECT_LT(std::abs(y[0].item().toFloat()), 1e-35);
  EXPECT_EQ(y[1].item().toFloat(), 0);
  EXPECT_EQ(y[2].item().toFloat(), 100);
  EXPECT_EQ(gelu_tanh(at::full({1}, kInfinity)).item().toFloat(), kInfinity);
  EXPECT_TRUE(std::isnan(gelu_tanh(at::full({1}, std::nanf(""))).item().toFloat()));
}

}  // namespace
}  // namespace abtrain::nn
