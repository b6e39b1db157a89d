// Against at::linear in fp64 on the same rounded factors.
#include "nn/grouped_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "device/devices.h"

namespace abtrain::nn {
namespace {

at::Tensor rounded(const at::Tensor& x) {
  return x.detach().to(at::kBFloat16).to(at::kDouble);
}

void expect_near(const at::Tensor& got, const at::Tensor& wanted) {
  ASSERT_EQ(got.sizes(), wanted.sizes());
  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
}

TEST(Bf16Linear, RoundsOnlyFactors) {
  for (const bool biased : {true, false}) {
    at::Tensor x = at::randn({4, 6, 32}).set_requires_grad(true);
    at::Tensor w = at::randn({24, 32}).set_requires_grad(true);
    at::Tensor b = biased ? at::randn({24}).set_requires_grad(true) : at::Tensor();
    const at::Tensor seed = at::randn({4, 6, 24});
    const at::Tensor y = grouped_linear(x, w, b, 1, at::kBFloat16);
    expect_near(
        y.detach(),
        at::linear(rounded(x), rounded(w), biased ? b.detach().to(at::kDouble) : at::Tensor()));
    y.backward(seed);
    const at::Tensor dy = rounded(seed).view({24, 24});
    expect_near(x.grad(), at::mm(dy, rounded(w)).view({4, 6, 32}));
    expect_near(w.grad(), at::mm(dy.t(), rounded(x).view({24, 32})));
    if (biased) {
      expect_near(b.grad(), seed.to(at::kDouble).sum(at::IntArrayRef({0, 1})));
    }
  }
}

TEST(Bf16Linear, GradientsOfFrozenWeightsAndOfInputsInBf16) {
  at::Tensor x = at::randn({3, 16}).to(at::kBFloat16).set_requires_grad(true);
  const at::Tensor w = at::randn({8, 16});
  const at::Tensor y = grouped_linear(x, w, {}, 1, at::kBFloat16);
  EXPECT_FALSE(y.is_view());  // so that relu_() may write into it
  y.backward(at::ones_like(y));
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  EXPECT_FALSE(w.grad().defined());
}

// There the result and the input's gradient are in bf16.
TEST(GpuBf16Linear, AddsUpGradientsInFp32) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const auto leaf = [](at::IntArrayRef sizes) {
    return at::randn(sizes, at::Device(at::kCUDA, 0)).set_requires_grad(true);
  };
  at::Tensor x = leaf({4, 6, 32});
  at::Tensor w = leaf({24, 32});
  at::Tensor b = leaf({24});
  w.mutable_grad() = at::ones_like(w);  // b has none yet
  const at::Tensor y = grouped_linear(x, w, b, 1, at::kBFloat16);
  EXPECT_FALSE(y.is_view());
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  const at::Tensor wanted = at::linear(rounded(x), rounded(w), rounded(b));
  EXPECT_LT((y - wanted).abs().max().item<double>(), 1e-2 * wanted.abs().max().item<double>());
  const at::Tensor seed = at::randn_like(y);
  y.backward(seed);
  const at::Tensor dy = rounded(seed).view({24, 24});
  expect_near(w.grad().detach(), at::mm(dy.t(), rounded(x).view({24, 32})) + 1);
  expect_near(b.grad().detach(), dy.sum(0));
  grouped_linear(x.detach(), w, b, 1, at::kBFloat16).backward(seed);  // both have one now
  expect_near(w.grad().detach(), 2 * at::mm(dy.t(), rounded(x).view({24, 32})) + 1);
  expect_near(b.grad().detach(), 2 * dy.sum(0));
  const at::Tensor dx = at::mm(dy, rounded(w)).view({4, 6, 32});
  EXPECT_LT((x.grad() - dx).abs().max().item<double>(), 1e-2 * dx.abs().max().item<double>());
}

}  // namespace
}  // namespace abtrain::nn
