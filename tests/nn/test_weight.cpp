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

// Those of 1, 2 and 3 that divide the outputs and inputs.
std::vector<std::int64_t> grids_of(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> grids = {1, 2, 3};
  std::erase_if(
      grids, [&](std::int64_t grid) { return sizes[0] % grid != 0 || sizes[1] % grid != 0; });
  return grids;
}

linalg::LowRankPair random_pair(const Weight& w, std::int64_t rank, std::int64_t grid) {
  if (grid == 1) {
    return {at::randn({w.m(), rank}), at::randn({rank, w.n()})};
  }
  return {
      at::randn({grid, grid, w.m() / grid, rank / grid}),
      at::randn({grid, grid, rank / grid, w.n() / grid})};
}

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
  for (const std::int64_t grid : grids_of(sizes)) {
    SCOPED_TRACE(grid);
    Weight w(sizes);
    const std::int64_t rank = grid * std::min<std::int64_t>(2, w.n() / grid);
    const auto [a, b] = random_pair(w, rank, grid);
    w.set_factors({a, b});
    EXPECT_EQ(w.rank(), rank);
    EXPECT_EQ(w.grid(), grid);
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
}

// Block by block: outputs and inputs fall into classes of neighbors.
TEST_P(Shapes, AGridIsOfBlocks) {
  const auto& sizes = GetParam();
  for (const std::int64_t grid : grids_of(sizes)) {
    if (grid == 1) {
      continue;
    }
    SCOPED_TRACE(grid);
    Weight w(sizes);
    w.set_grid(grid);
    const at::Tensor values = at::randn(sizes);
    w.dense = w.is_conv() ? values.contiguous(at::MemoryFormat::ChannelsLast) : values;
    const at::Tensor blocks = w.matrix();
    const std::int64_t outputs = sizes[0] / grid, inputs = sizes[1] / grid;
    for (std::int64_t o = 0; o < grid; ++o) {
      for (std::int64_t i = 0; i < grid; ++i) {
        const at::Tensor block = values.narrow(0, o * outputs, outputs)
                                     .narrow(1, i * inputs, inputs)
                                     .reshape({outputs, -1});
        EXPECT_TRUE(
            w.transposed() ? at::equal(blocks[i][o], block.t()) : at::equal(blocks[o][i], block));
      }
    }
    const at::Tensor back = w.from_matrix(blocks);
    EXPECT_TRUE(at::equal(back, values));
    EXPECT_EQ(back.strides(), w.dense.strides());
  }
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
    for (const std::int64_t grid : grids_of(sizes)) {
      for (const std::int64_t rank : {grid, w.n()}) {  // full rank among them
        w.set_factors(random_pair(w, rank, grid));
        w.inner.requires_grad_();
        w.outer.requires_grad_();
        *tensors.parameters[0].tensor = at::randn({sizes[0]});
        at::Tensor x =
            conv ? at::randn({3, sizes[1], 7, 7}).contiguous(at::MemoryFormat::ChannelsLast)
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
