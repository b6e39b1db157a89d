// Against at::linear in fp64 on the same rounded factors.
#include "nn/grouped_linear.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
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

TEST(GroupedLinear, MapsEachSliceByItsOwnRows) {
  for (const std::int64_t groups : {2, 4}) {
    SCOPED_TRACE(groups);
    at::Tensor x = at::randn({5, 3, 16}).set_requires_grad(true);
    at::Tensor w = at::randn({8, 16 / groups}).set_requires_grad(true);
    at::Tensor b = at::randn({8}).set_requires_grad(true);
    w.mutable_grad() = at::ones_like(w);  // added to
    const at::Tensor seed = at::randn({5, 3, 8});
    const at::Tensor y = grouped_linear(x, w, b, groups, at::kBFloat16);
    y.backward(seed);
    const auto inputs = rounded(x).view({15, 16}).chunk(groups, 1);
    const auto weights = rounded(w).chunk(groups, 0);
    const auto dy = rounded(seed).view({15, 8}).chunk(groups, 1);
    std::vector<at::Tensor> outputs, dx, dw;
    for (std::size_t g = 0; g < inputs.size(); ++g) {
      outputs.push_back(at::mm(inputs[g], weights[g].t()));
      dx.push_back(at::mm(dy[g], weights[g]));
      dw.push_back(at::mm(dy[g].t(), inputs[g]));
    }
    expect_near(y.detach(), at::cat(outputs, 1).view({5, 3, 8}) + b.detach());
    expect_near(x.grad(), at::cat(dx, 1).view({5, 3, 16}));
    expect_near(w.grad(), at::cat(dw) + 1);
    expect_near(b.grad(), seed.to(at::kDouble).sum(at::IntArrayRef({0, 1})));
  }
}

TEST(GroupedLinear, ExchangesGroups) {
  for (const std::int64_t groups : {2, 3, 5}) {
    for (const std::int64_t size : {1, 2, 3, 4, 5, 6, 8}) {
      at::Tensor x = at::randn({7, groups * groups * size}).set_requires_grad(true);
      const at::Tensor y = exchange_groups(x, groups);
      const at::Tensor wanted =
          x.detach().view({7, groups, groups, size}).transpose(1, 2).reshape_as(x);
      EXPECT_TRUE(at::equal(y.detach(), wanted));
      y.backward(wanted);
      EXPECT_TRUE(at::equal(x.grad(), x.detach()));
    }
  }
}

// Against differences of its own sums, in fp64; bf16 rounds factors and what passes between them.
// An adapter beside its frozen weight is one weight, in the output and in all gradients; frozen
// factors get none.
TEST(FactoredLinear, IsTheSumOfItsWeights) {
  for (const std::int64_t grid : {1, 2}) {
    constexpr std::int64_t kRank = 4;
    const auto leaf = [](at::IntArrayRef sizes) {
      return at::randn(sizes, at::kDouble).set_requires_grad(true);
    };
    const at::Tensor rest = at::randn({6, 8}, at::kDouble);
    at::Tensor x = leaf({2, 5, 8}), bias = leaf({6});
    at::Tensor inner = leaf({grid * kRank, 8 / grid}), outer = leaf({6, kRank});
    const Factors factors{inner, outer, rest, 0.5, grid};
    const at::Tensor y = factored_linear(x, factors, bias, at::kDouble);
    const at::Tensor seed = at::randn_like(y);
    (y * seed).sum().backward();
    std::vector<at::Tensor> got = {y.detach(), x.grad(), bias.grad(), inner.grad(), outer.grad()};
    for (at::Tensor* const tensor : {&x, &bias, &inner, &outer}) {
      tensor->mutable_grad().reset();
    }
    const at::Tensor low = grouped_linear(
        grid == 1 ? grouped_linear(x, inner, {}, 1, at::kDouble)
                  : exchange_groups(grouped_linear(x, inner, {}, grid, at::kDouble), grid),
        outer, {}, grid, at::kDouble);
    const at::Tensor wanted = at::linear(x, rest, bias) + 0.5 * low;
    (wanted * seed).sum().backward();
    const std::vector<at::Tensor> all = {
        wanted.detach(), x.grad(), bias.grad(), inner.grad(), outer.grad()};
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_LT((got[i] - all[i]).abs().max().item<double>(), 1e-12) << grid << ' ' << i;
    }
    inner.set_requires_grad(false).mutable_grad().reset();
    outer.mutable_grad().reset();
    (factored_linear(x, {inner, outer, rest, 0.5, grid}, bias, at::kDouble) * seed)
        .sum()
        .backward();
    EXPECT_FALSE(inner.grad().defined());
    EXPECT_LT((outer.grad() - all[4]).abs().max().item<double>(), 1e-12);
  }
}

TEST(GridLinear, GradientsAreThoseOfDifferences) {
  constexpr std::int64_t kGrid = 2, kRank = 3;
  const auto leaf = [](at::IntArrayRef sizes) {
    return at::randn(sizes, at::kDouble).set_requires_grad(true);
  };
  at::Tensor all[] = {
      leaf({5, 8}), leaf({kGrid * kGrid * kRank, 4}), leaf({6, kGrid * kRank}), leaf({6})};
  const at::Tensor seed = at::randn({5, 6}, at::kDouble);
  const auto sum = [&] {
    return (factored_linear(
                all[0], {.inner = all[1], .outer = all[2], .grid = kGrid}, all[3], at::kDouble) *
            seed)
        .sum();
  };
  sum().backward();
  const at::NoGradGuard no_grad;
  for (at::Tensor& tensor : all) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      const at::Tensor element = tensor.view({-1})[i];
      const double middle = element.item<double>();
      element.fill_(middle + 1e-3);
      const double up = sum().item<double>();
      element.fill_(middle - 1e-3);
      const double down = sum().item<double>();
      element.fill_(middle);
      EXPECT_NEAR(tensor.grad().view({-1})[i].item<double>(), (up - down) / 2e-3, 1e-8);
    }
  }
}

TEST(GridLinear, IsTheSameInSteps) {
  constexpr std::int64_t kGrid = 4, kRank = 2;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    at::Tensor results[2][5];
    for (const bool whole : {true, false}) {
      const auto leaf = [](at::IntArrayRef sizes, std::uint64_t seed) {
        return at::randn(sizes, at::detail::createCPUGenerator(seed)).set_requires_grad(true);
      };
      at::Tensor x = leaf({9, 16}, 1);
      at::Tensor inner = leaf({kGrid * kGrid * kRank, 4}, 2);
      at::Tensor outer = leaf({12, kGrid * kRank}, 3);
      at::Tensor bias = leaf({12}, 4);
      const at::Tensor y =
          whole ? factored_linear(x, {.inner = inner, .outer = outer, .grid = kGrid}, bias, type)
                : grouped_linear(
                      exchange_groups(grouped_linear(x, inner, {}, kGrid, type), kGrid), outer,
                      bias, kGrid, type);
      y.sum().backward();
      at::Tensor* const of = results[whole ? 0 : 1];
      of[0] = y.detach();
      of[1] = x.grad();
      of[2] = inner.grad();
      of[3] = outer.grad();
      of[4] = bias.grad();
    }
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << i;
    }
  }
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
