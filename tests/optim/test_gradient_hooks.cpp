#include "optim/gradient_hooks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace abtrain::optim {
namespace {

struct Chain {
  at::Tensor a = at::ones({2, 2}), b = at::ones({2, 2}), unused = at::ones({1});
  ParameterBlock block{{{"a", &a}, {"b", &b}, {"unused", &unused}}, true, 0};
  at::Tensor loss() {
    // b is used twice: its gradient is whole after both.
    return at::matmul(at::matmul(a, b), b).sum();
  }
};

TEST(GradientHooks, TellEachParameterOnceWhenItsGradientIsWhole) {
  Chain chain;
  std::vector<std::size_t> order;
  std::vector<float> seen;
  {
    const GradientHooks hooks(chain.block, [&](std::size_t index) {
      order.push_back(index);
      seen.push_back(chain.block.gradients()[static_cast<std::int64_t>(4 * index)].item<float>());
    });
    chain.loss().backward();
  }
  // a: sum of rows of b b = 4; b: a^T (1 b^T) + (a b)^T 1 = 4 + 4.
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(seen, (std::vector<float>{4, 8}));
}

TEST(GradientHooks, GoWithTheirOwner) {
  Chain chain;
  int calls = 0;
  {
    const GradientHooks hooks(chain.block, [&](std::size_t) { ++calls; });
    chain.loss().backward();
    chain.loss().backward();
  }
  EXPECT_EQ(calls, 4);
  chain.loss().backward();
  EXPECT_EQ(calls, 4);
}

TEST(GradientHooks, WhatTheyThrowTheBackwardPassThrows) {
  Chain chain;
  const GradientHooks hooks(chain.block, [](std::size_t) { throw std::invalid_argument("gone"); });
  EXPECT_THROW(chain.loss().backward(), std::invalid_argument);
}

}  // namespace
}  // namespace abtrain::optim
