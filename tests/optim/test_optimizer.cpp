#include "optim/optimizer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

namespace abtrain::optim {
namespace {

// One number, stepped as the papers say, in float64.
struct Reference {
  OptimizerOptions o;
  double x = 0, m = 0, v = 0;
  int t = 0;
  void adamw(double g, double lr, double decay) {
    ++t;
    x -= lr * decay * x;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = v / (1 - std::pow(o.beta2, t));
    x -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
  void sgd(double g, double lr, double decay) {
    ++t;
    g += decay * x;
    m = t == 1 ? g : o.momentum * m + g;
    x -= lr * (o.nesterov.value_or(false) ? g + o.momentum * m : m);
  }
};

class Steps : public ::testing::TestWithParam<OptimizerOptions> {};

// A weight that decays, a bias that does not, a factor, and one that is trained with its other.
TEST_P(Steps, EqualTheFormula) {
  const OptimizerOptions o = GetParam();
  const auto optimizer = make_optimizer(o);
  at::Tensor weight = at::randn({3, 5});
  at::Tensor bias = at::randn({3});
  at::Tensor factor = at::randn({4, 2});
  at::Tensor one_of_two = at::randn({2, 4});
  std::vector<at::Tensor*> tensors = {&weight, &bias, &factor, &one_of_two};
  std::vector<std::vector<Reference>> references;
  for (const at::Tensor* t : tensors) {
    references.emplace_back();
    for (std::int64_t i = 0; i < t->numel(); ++i) {
      references.back().push_back({o, t->const_data_ptr<float>()[i], 0, 0, 0});
    }
  }
  ParameterBlock block(
      {{"weight", &weight, true, false},
       {"bias", &bias, false, false},
       {"factor", &factor, true, true},
       {"one of two", &one_of_two, true, true, 0, 1, true}},
      true, optimizer->moments());
  const double lr = 0.01, factor_scale = 3, divisor = 2.5;
  Rates rates(at::kCPU);
  for (int step = 0; step < 6; ++step) {
    block.gradients().copy_(at::randn({block.numel()}));
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      const double decay = k == 3 ? 0.05 : k == 1 && !o.decay_all ? 0 : 0.1;
      const double rate = k >= 2 ? lr * factor_scale : lr;
      const auto* gradient = block.gradients().const_data_ptr<float>() + block.offset(k);
      for (std::size_t i = 0; i < references[k].size(); ++i) {
        const double g = gradient[i] / divisor;
        o.name == "adamw" ? references[k][i].adamw(g, rate, decay)
                          : references[k][i].sgd(g, rate, decay);
      }
    }
    rates.set(lr, factor_scale);
    optimizer->step(block, rates, at::full({}, divisor, at::kFloat));
  }
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    for (std::size_t i = 0; i < references[k].size(); ++i) {
      EXPECT_NEAR(tensors[k]->const_data_ptr<float>()[i], references[k][i].x, 2e-6)
          << block.parameters()[k].name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Steps,
    ::testing::Values(
        OptimizerOptions{.name = "adamw", .weight_decay = 0.1},
        OptimizerOptions{.name = "adamw", .weight_decay = 0.1, .decay_all = true},
        OptimizerOptions{.name = "sgd", .weight_decay = 0.1, .momentum = 0},
        OptimizerOptions{.name = "sgd", .weight_decay = 0.1, .momentum = 0.9, .nesterov = false},
        OptimizerOptions{
            .name = "sgd",
            .weight_decay = 0.1,
            .decay_all = true,
            .momentum = 0.9,
            .nesterov = true}));

// The rate in a tensor changes no bit against the rate as an argument.
TEST(Rates, OfTheCpuAreTheDoublesThemselves) {
  OptimizerOptions o;
  o.name = "adamw";
  const auto optimizer = make_optimizer(o);
  at::Tensor values = at::randn({1003});
  const at::Tensor plain = values.clone();
  ParameterBlock block({{"w", &values, false, true}}, true, 2);
  block.gradients().copy_(at::randn({1003}));
  const at::Tensor gradients = block.gradients().clone();
  const at::Tensor first = at::zeros({1003});
  const at::Tensor second = at::zeros({1003});
  const at::Tensor steps = at::zeros({});
  Rates rates(at::kCPU);
  for (const double lr : {0.1, 1e-3 / 3}) {  // no fp32 numbers
    rates.set(lr, 3);
    optimizer->step(block, rates, {});
    at::Tensor(steps).add_(1);
    at::_fused_adamw_(
        {plain}, {gradients}, {first}, {second}, {}, {steps}, lr * 3, o.beta1, o.beta2, 0, o.eps,
        false, false);
    EXPECT_TRUE(at::equal(block.values(), plain));
  }
}

TEST(Clip, DividesByTheExcess) {
  const at::Tensor gradients = at::full({4}, 3.0F);  // norm 6
  const Clip clipped = clip(gradients, 1.5);
  EXPECT_DOUBLE_EQ(clipped.norm.item<double>(), 6);
  EXPECT_NEAR(clipped.divisor.item<double>(), 4, 1e-6);
  EXPECT_FALSE(clip(gradients, 6.5).divisor.defined());
  EXPECT_FALSE(clip(gradients, 0).divisor.defined());
  EXPECT_DOUBLE_EQ(clip(gradients, 0).norm.item<double>(), 6);
  // Whatever the norm, the same operators.
  EXPECT_EQ(clip(gradients, 6.5, true).divisor.item<double>(), 1);
  EXPECT_NEAR(clip(gradients, 1.5, true).divisor.item<double>(), 4, 1e-6);
}

TEST(Clip, TheNormOfManyNumbersKeepsItsDigits) {
  const at::Tensor gradients = at::randn({10'000'001}) * 1e-3;
  const double exact = at::linalg_vector_norm(gradients.to(at::kDouble)).item<double>();
  EXPECT_NEAR(clip(gradients, 1).norm.item<double>() / exact, 1, 1e-6);
}

}  // namespace
}  // namespace abtrain::optim
