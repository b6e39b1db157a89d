// QCMD and QRDA Adagrad against their formulas, the textbook and PyTorch. That the moments are all
// of their state: Optimizers.GoOnFromTheirMoments in test_muon.cpp.
#include "ops/adagrad.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

at::Tensor randn(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

OptimizerOptions options_of(const std::string& name, double l1, Center center = Center::Init) {
  OptimizerOptions o;
  o.name = name;
  o.l1 = l1;
  o.center = center;
  return o;
}

// The specification's examples: H = delta + sqrt(s) is given by s with g = 0.
TEST(Adagrad, StepsAreThoseOfTheWorkedExamples) {
  constexpr double kDelta = 1e-3;
  const auto squares_of = [&](std::vector<double> h) {
    return at::tensor(h, at::kDouble).sub(kDelta).square().to(at::kFloat);
  };
  const at::Tensor rate = at::full({}, 0.1, at::kDouble);
  const auto close = [](const at::Tensor& x, std::vector<double> wanted) {
    return x.to(at::kDouble).sub(at::tensor(wanted, at::kDouble)).abs().max().item<double>() < 1e-6;
  };
  ops::CodeBlocks blocks({{0, 3}});
  {
    // Dual averaging: z is given, so g = 0.
    const at::Tensor x = at::zeros({3});
    ops::adagrad_step(
        {x, at::zeros({3}), squares_of({2, 1, 1}), at::tensor({5., -3., .5}, at::kFloat), {}},
        blocks, at::full({1}, 0.1f), rate, at::full({}, 10.0f), {}, kDelta);
    EXPECT_TRUE(close(x, {-.2, .2, 0})) << x;
    EXPECT_EQ(x[2].item<float>(), 0);
  }
  {
    // Mirror descent: H after the step is given, so s is less by g^2.
    const at::Tensor g = at::tensor({1., -.5, 0.}, at::kFloat);
    const at::Tensor x = at::tensor({.3, -.05, .2}, at::kFloat);
    ops::adagrad_step(
        {x, g, squares_of({2, 1, 4}).sub(g * g), {}, {}}, blocks, at::full({1}, 0.8f), rate,
        at::full({}, 1.0f), {}, kDelta);
    EXPECT_TRUE(close(x, {.21, 0, .18})) << x;
    EXPECT_EQ(x[1].item<float>(), 0);
  }
}

// A weight that has the l1 term and a bias that has none.
struct Parameters {
  at::Tensor weight, bias;
  std::unique_ptr<Optimizer> optimizer;
  ParameterBlock block;
  Rates rates{at::kCPU};

  explicit Parameters(const OptimizerOptions& o)
      : weight(randn(60, 1).view({6, 10})),
        bias(randn(6, 2)),
        optimizer(make_optimizer(o)),
        block(
            {{"weight", &weight, true, false}, {"bias", &bias, false, false}}, true,
            optimizer->moments()) {}

  void step(const at::Tensor& gradient, double rate, double divisor = 1) {
    block.gradients().copy_(gradient);
    rates.set(rate, 3);
    optimizer->step(block, rates, divisor == 1 ? at::Tensor() : at::full({}, divisor, at::kFloat));
  }
};

struct AdagradCase {
  const char* name;
  const char* optimizer;
  double l1;
  Center center;
  double divisor;
};

class AdagradSteps : public ::testing::TestWithParam<AdagradCase> {};

TEST_P(AdagradSteps, FollowTheFormulasInFloat64) {
  const AdagradCase c = GetParam();
  const bool dual = std::string(c.optimizer) == "qrda-adagrad";
  OptimizerOptions o = options_of(c.optimizer, c.l1, c.center);
  o.delta = 0.02;
  Parameters p(o);
  at::Tensor x = p.block.values().to(at::kDouble);
  const at::Tensor start = c.center == Center::Init ? x.clone() : at::zeros_like(x);
  at::Tensor s = at::zeros_like(x);
  at::Tensor z = at::zeros_like(x);
  at::Tensor l1 = at::full({66}, static_cast<double>(float(c.l1)), at::kDouble);
  l1.narrow(0, 60, 6).zero_();
  const auto soft = [](const at::Tensor& v, const at::Tensor& t) {
    return v.sign() * (v.abs() - t).clamp_min(0);
  };
  for (int t = 1; t <= 40; ++t) {
    const double rate = 0.05 * (t < 5 ? 0.2 * t : 1);
    const at::Tensor g = randn(66, 100 + static_cast<std::uint64_t>(t));
    p.step(g, rate, c.divisor);
    const at::Tensor gradient = g.to(at::kDouble) / c.divisor;
    s += gradient * gradient;
    z += gradient;
    const at::Tensor h = s.sqrt() + o.delta;
    x = dual ? soft(start - rate * z / h, rate * t * l1 / h)
             : soft(x - rate * gradient / h, rate * l1 / h);
    EXPECT_LT(p.block.values().to(at::kDouble).sub(x).abs().max().item<double>(), 2e-6) << t;
  }
  const auto zeros = p.weight.eq(0).sum().item<std::int64_t>();
  EXPECT_EQ(zeros, x.narrow(0, 0, 60).eq(0).sum().item<std::int64_t>());
  EXPECT_EQ(zeros > 0, c.l1 > 0);
  EXPECT_FALSE(p.bias.eq(0).any().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    All, AdagradSteps,
    ::testing::Values(
        AdagradCase{"qcmd", "qcmd-adagrad", 0.3, Center::Init, 1},
        AdagradCase{"qcmd_clipped", "qcmd-adagrad", 0.3, Center::Init, 2.5},
        AdagradCase{"qcmd_dense", "qcmd-adagrad", 0, Center::Init, 1},
        AdagradCase{"qrda", "qrda-adagrad", 0.1, Center::Init, 1},
        AdagradCase{"qrda_zero", "qrda-adagrad", 0.1, Center::Zero, 1},
        AdagradCase{"qrda_clipped", "qrda-adagrad", 0.1, Center::Zero, 2.5},
        AdagradCase{"qrda_dense", "qrda-adagrad", 0, Center::Init, 1}),
    [](const auto& test) { return test.param.name; });

// delta is added to the root, as PyTorch's eps is.
TEST(Adagrad, WithoutL1IsTheTextbooksToTheBit) {
  const OptimizerOptions o = options_of("qcmd-adagrad", 0);
  Parameters p(o);
  const at::Tensor x = p.block.values().clone();
  const at::Tensor s = at::zeros_like(x);
  constexpr float kRate = 0.05f;
  const auto delta = static_cast<float>(o.delta);
  for (int t = 0; t < 100; ++t) {
    const at::Tensor g = randn(66, 200 + static_cast<std::uint64_t>(t));
    p.step(g, kRate);
    // Number by number: the root of ATen's vectors is not always the nearest.
    for (std::int64_t i = 0; i < 66; ++i) {
      const float gradient = g.const_data_ptr<float>()[i];
      float& sum = s.data_ptr<float>()[i];
      const float square = gradient * gradient;
      sum += square;
      x.data_ptr<float>()[i] -= kRate * gradient / (std::sqrt(sum) + delta);
    }
    ASSERT_TRUE(at::equal(p.block.values(), x)) << t;
  }
}

TEST(Adagrad, WithoutL1IsPyTorchs) {
  const OptimizerOptions o = options_of("qcmd-adagrad", 0);
  Parameters p(o);
  at::Tensor x = p.block.values().clone();
  at::Tensor s = at::zeros_like(x);
  at::Tensor steps = at::zeros({});
  for (int t = 0; t < 100; ++t) {
    at::Tensor g = randn(66, 300 + static_cast<std::uint64_t>(t));
    p.step(g, 0.05);
    steps.add_(1);
    at::_fused_adagrad_(
        {x}, {g}, {s}, {steps},
        /*lr=*/0.05,
        /*lr_decay=*/0,
        /*weight_decay=*/0,
        /*eps=*/o.delta,
        /*maximize=*/false);
    EXPECT_LT(p.block.values().sub(x).abs().max().item<double>(), 1e-6) << t;
  }
}

TEST(Adagrad, DecayAllMakesBiasesSparseToo) {
  OptimizerOptions o = options_of("qcmd-adagrad", 10);
  o.decay_all = true;
  Parameters p(o);
  for (int t = 0; t < 20; ++t) {
    p.step(at::full({66}, 1e-3f), 0.5);
  }
  EXPECT_TRUE(p.bias.eq(0).all().item<bool>());
}

TEST(Adagrad, WhatIsNotFiniteStays) {
  for (const char* name : {"qcmd-adagrad", "qrda-adagrad"}) {
    Parameters p(options_of(name, 0.1));
    at::Tensor g = randn(66, 4);
    g[3].fill_(std::nanf(""));
    p.step(g, 0.1);
    EXPECT_TRUE(std::isnan(p.block.values()[3].item<float>())) << name;
    EXPECT_EQ(p.block.values().isnan().sum().item<int>(), 1) << name;
  }
}

}  // namespace
}  // namespace abtrain::optim
