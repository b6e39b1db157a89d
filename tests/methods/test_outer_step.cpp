#include "methods/outer_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace abtrain::methods {
namespace {

// torch.optim.SGD, with nesterov=True and False, from PyTorch's Python.
TEST(OuterStep, HasPyTorchsValues) {
  const std::array<std::array<float, 4>, 3> gradients = {
      {{0.1F, -0.2F, 0.3F, 0}, {0.05F, 0.4F, -0.3F, 0}, {-0.6F, 0.1F, 0.2F, 1}}};
  struct StepCase {
    OuterStep step;
    std::array<std::array<float, 4>, 3> wanted;
  };
  const std::vector<StepCase> cases = {
      {{OuterRule::Nesterov, 0.7, 0.9},
       {{{0.866999984F, -1.733999968F, 0.101000011F, 0},
         {0.743799984F, -2.152600050F, 0.329900026F, 0},
         {1.462419987F, -2.410340071F, 0.080910020F, -1.329999924F}}}},
      {{OuterRule::Nesterov, 0.5, 0.25},
       {{{0.9375F, -1.875F, 0.3125F, 0},
         {0.903124988F, -2.118750095F, 0.490625024F, 0},
         {1.275781274F, -2.192187548F, 0.372656286F, -0.625F}}}},
      {{OuterRule::Sgd, 0.7, 0.9},
       {{{0.930000007F, -1.860000014F, 0.289999992F, 0},
         {0.832000017F, -2.013999939F, 0.310999990F, 0},
         {1.163800001F, -2.222599983F, 0.189899981F, -0.699999988F}}}}};
  for (const StepCase& c : cases) {
    at::Tensor x = at::tensor({1.0F, -2.0F, 0.5F, 0.0F});
    at::Tensor velocity = at::zeros({4});
    for (std::size_t k = 0; k < 3; ++k) {
      const at::Tensor change = at::tensor(at::ArrayRef<float>(gradients[k].data(), 4)).neg();
      c.step(x, change, velocity);
      const at::Tensor wanted = at::tensor(at::ArrayRef<float>(c.wanted[k].data(), 4));
      EXPECT_TRUE(at::allclose(x, wanted, 0, 3e-7)) << x << wanted;
    }
  }
}

TEST(OuterStep, OfTheAverageIsTheMean) {
  at::Tensor x = at::tensor({1.0F, -2.0F, 0.5F});
  OuterStep{}(x, at::tensor({0.25F, 1.0F, -4.0F}), at::Tensor());
  EXPECT_TRUE(at::equal(x, at::tensor({1.25F, -1.0F, -3.5F})));
}

TEST(OuterStep, AutoIsTheMethodsOwn) {
  MethodOptions options;
  for (const char* name : {"ab", "local-sgd", "diloco"}) {
    options.name = name;
    EXPECT_EQ(
        outer_step_of(options).rule,
        options.name == "diloco" ? OuterRule::Nesterov : OuterRule::Average);
  }
  options.outer.name = OuterRule::Average;
  EXPECT_FALSE(outer_step_of(options).has_velocity());
  EXPECT_EQ(outer_step_of(options).lr, 1);
  options.name = "ab";
  options.outer.name = OuterRule::Sgd;
  EXPECT_EQ(outer_step_of(options).lr, options.outer.lr);
  EXPECT_TRUE(outer_step_of(options).has_velocity());
}

}  // namespace
}  // namespace abtrain::methods
