#include "nn/weight.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "distance.h"
#include "nn/linear.h"

namespace abtrain::nn {
namespace {

const std::vector<std::vector<std::int64_t>> kShapes = {
    {7, 5},        {5, 7},       {1, 9},       {9, 1}, {6, 4, 3, 3},  // O < I*kh*kw: transposed
    {40, 2, 3, 3},                                                    // O > I*kh*kw
    {8, 3, 1, 1},  {3, 8, 1, 1}, {4, 1, 5, 5},
};

class Shapes : public ::testing::TestWithParam<std::vector<std::int64_t>> {};

TEST_P(Shapes, MatrixIsTheSpecifiedOneAndRoundTrips) {
  const auto& sizes = GetParam();
  Weight w(sizes);
  const at::Tensor values = at::randn(sizes);
  w.dense = w.is_conv() ? values.contiguous(at::MemoryFormat::ChannelsLast) : values;
  EXPECT_GE(w.m(), w.n());
  EXPECT_EQ(w.m() * w.n(), w.numel());
  at::Tensor expected = values.reshape({sizes[0], -1});
  if (expected.size(0) < expected.size(1)) {
    expected = expected.t();
  }
  EXPECT_TRUE(at::equal(w.matrix(), expected));
  const at::Tensor back = w.from_matrix(w.matrix());
  EXPECT_TRUE(at::equal(back, values));
  EXPECT_EQ(back.strides(), w.dense.strides());
}

TEST_P(Shapes, FactorsMergeToTheirProduct) {
  const auto& sizes = GetParam();
  Weight w(sizes);
  const std::int64_t rank = std::min<std::int64_t>(2, w.n());
  const at::Tensor a = at::randn({w.m(), rank});
  const at::Tensor b = at::randn({rank, w.n()});
  w.factor(Factor::A) = w.to_stored(Factor::A, a);
  w.factor(Factor::B) = w.to_stored(Factor::B, b);
  EXPECT_EQ(w.rank(), rank);
  EXPECT_EQ(w.factor(Factor::A).numel(), w.factor_numel(Factor::A, rank));
  EXPECT_EQ(w.factor(Factor::B).sizes(), w.stored_sizes(Factor::B, rank));
  EXPECT_TRUE(at::equal(w.pair().a, a));
  EXPECT_TRUE(at::equal(w.pair().b, b));
  EXPECT_LT(distance(w.merged(), w.from_matrix(at::matmul(a, b))), 1e-5);
  // A flat copy of a stored factor reads back with view_at.
  const at::Tensor stored = w.factor(Factor::A);
  const at::Tensor flat =
      stored.dim() == 4 ? stored.permute({0, 2, 3, 1}).reshape({-1}) : stored.reshape({-1});
  EXPECT_TRUE(at::equal(view_at(flat, 0, stored.sizes().vec()), stored));
}

// Forward and all gradients of the factored layer against the dense layer with
// the product of the factors, through autograd.
TEST_P(Shapes, FactoredLayerEqualsTheDenseOne) {
  const auto& sizes = GetParam();
  for (const std::int64_t stride : {1, 2}) {
    const bool conv = sizes.size() == 4;
    std::unique_ptr<Layer> layer;
    if (conv) {
      layer = conv2d(
          sizes[1], sizes[0],
          ConvOptions{.kernel = sizes[2], .stride = stride, .padding = sizes[2] / 2});
    } else {
      layer = linear(sizes[1], sizes[0]);
    }
    NamedTensors tensors;
    layer->list("", tensors);
    Weight& w = *tensors.weights[0].weight;
    for (const std::int64_t rank : {std::int64_t{1}, w.n()}) {  // full rank among them
      w.factor(Factor::A) = w.to_stored(Factor::A, at::randn({w.m(), rank})).requires_grad_();
      w.factor(Factor::B) = w.to_stored(Factor::B, at::randn({rank, w.n()})).requires_grad_();
      *tensors.parameters[0].tensor = at::randn({sizes[0]});
      at::Tensor x = conv
                         ? at::randn({3, sizes[1], 7, 7}).contiguous(at::MemoryFormat::ChannelsLast)
                         : at::randn({6, sizes[1]});
      x.requires_grad_();
      const at::Tensor y = layer->forward(x, {true, {}});
      const at::Tensor weight_gradient = at::randn(y.sizes());
      (y * weight_gradient).sum().backward();
      const at::Tensor x_gradient = x.grad().clone();
      const at::Tensor a_gradient = w.factor(Factor::A).grad().clone();
      const at::Tensor b_gradient = w.factor(Factor::B).grad().clone();
      x.mutable_grad().reset();
      w.factor(Factor::A).mutable_grad().reset();
      w.factor(Factor::B).mutable_grad().reset();

      const at::Tensor merged = w.merged();
      const at::Tensor reference =
          conv ? at::conv2d(
                     x, merged, *tensors.parameters[0].tensor, at::IntArrayRef({stride, stride}),
                     at::IntArrayRef({sizes[2] / 2, sizes[2] / 2}))
               : at::linear(x, merged, *tensors.parameters[0].tensor);
      const double scale = reference.abs().max().item<double>() + 1;
      EXPECT_LT(distance(y, reference) / scale, 1e-4);
      (reference * weight_gradient).sum().backward();
      const auto close = [](const at::Tensor& got, const at::Tensor& want) {
        return distance(got, want) / (want.abs().max().item<double>() + 1) < 1e-4;
      };
      EXPECT_TRUE(close(x_gradient, x.grad()));
      EXPECT_TRUE(close(a_gradient, w.factor(Factor::A).grad()));
      EXPECT_TRUE(close(b_gradient, w.factor(Factor::B).grad()));
    }
  }
}

TEST(Layers, AFrozenFactorGetsNoGradientAndLetsItThrough) {
  const auto layer = linear(6, 9);
  NamedTensors tensors;
  layer->list("", tensors);
  Weight& w = *tensors.weights[0].weight;
  for (const Factor frozen : {Factor::A, Factor::B}) {
    w.factor(Factor::A) = at::randn({9, 2}).set_requires_grad(frozen != Factor::A);
    w.factor(Factor::B) = at::randn({2, 6}).set_requires_grad(frozen != Factor::B);
    at::Tensor x = at::randn({4, 6}).requires_grad_();
    layer->forward(x, {true, {}}).sum().backward();
    EXPECT_FALSE(w.factor(frozen).grad().defined());
    EXPECT_TRUE(w.factor(frozen == Factor::A ? Factor::B : Factor::A).grad().defined());
    EXPECT_GT(x.grad().abs().sum().item<float>(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Shapes, ::testing::ValuesIn(kShapes), [](const auto& each) {
  std::string name = "of";
  for (const std::int64_t size : each.param) {
    name.append("_").append(std::to_string(size));
  }
  return name;
});

}  // namespace
}  // namespace abtrain::nn
