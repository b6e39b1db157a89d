#include "ops/magnitudes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tensors.h"

namespace abtrain::ops {
namespace {

// Single elements, tensors of many blocks, and a gap.
std::vector<CodeBlocks::Tensor> some_tensors() {
  return {{0, 1}, {1, 5001}, {6000, 4096}, {10096, 1}, {10097, 90001}};
}

TEST(Magnitudes, AreThoseOfFloat64) {
  const auto tensors = some_tensors();
  CodeBlocks blocks(tensors);
  const at::Tensor u = randn(blocks.end(), 3);
  const at::Tensor largest = at::empty({blocks.tensors()});
  const at::Tensor moments = at::empty({2 * blocks.tensors()});
  const at::Tensor all = at::empty({2 * blocks.tensors()});
  const at::Tensor above = at::empty({2 * blocks.tensors()});
  const at::Tensor cuts = at::full({blocks.tensors()}, 0.5f);
  cuts[2].fill_(100);  // nothing is above
  magnitudes(u, blocks, Statistic::Largest, largest);
  magnitudes(u, blocks, Statistic::Moments, moments);
  magnitudes(u, blocks, Statistic::Above, all);
  magnitudes(u, blocks, Statistic::Above, above, cuts);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto t = static_cast<std::int64_t>(i);
    const at::Tensor part = u.narrow(0, tensors[i].begin, tensors[i].numel).abs().to(at::kDouble);
    const auto squares = part.square().sum().item<double>();
    const auto sum = part.sum().item<double>();
    EXPECT_EQ(largest[t].item<double>(), part.max().item<double>());
    EXPECT_NEAR(moments[2 * t].item<double>(), squares, 1e-6 * squares);
    EXPECT_NEAR(moments[2 * t + 1].item<double>(), sum, 1e-6 * sum);
    EXPECT_EQ(all[2 * t].item<float>(), moments[2 * t + 1].item<float>());
    EXPECT_EQ(all[2 * t + 1].item<double>(), tensors[i].numel);
    const at::Tensor sent = part.masked_select(part.gt(t == 2 ? 100 : 0.5));
    const auto wanted = sent.sum().item<double>();
    EXPECT_NEAR(above[2 * t].item<double>(), wanted, 1e-6 * wanted);
    EXPECT_EQ(above[2 * t + 1].item<double>(), sent.numel());
  }
}

TEST(Magnitudes, OfZerosAreZero) {
  CodeBlocks blocks({{0, 9}});
  const at::Tensor u = at::zeros({9});
  const at::Tensor results = at::empty({2});
  magnitudes(u, blocks, Statistic::Largest, results);
  EXPECT_EQ(results[0].item<float>(), 0);
  magnitudes(u, blocks, Statistic::Moments, results);
  EXPECT_FALSE(results.any().item<bool>());
}

TEST(Magnitudes, WhatIsNotFiniteShowsInItsTensor) {
  CodeBlocks blocks({{0, 5}, {5, 7}});
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    const at::Tensor u = randn(12, 3);
    u[6].fill_(bad);
    const at::Tensor results = at::empty({2});
    magnitudes(u, blocks, Statistic::Largest, results);
    EXPECT_TRUE(std::isfinite(results[0].item<float>()));
    EXPECT_EQ(results[1].item<float>(), kInfinity);
    const at::Tensor sums = at::empty({4});
    magnitudes(u, blocks, Statistic::Above, sums);
    EXPECT_TRUE(std::isfinite(sums[0].item<float>()));
    EXPECT_FALSE(std::isfinite(sums[2].item<float>()));
    // A cut that follows from the element has nothing finite above it.
    magnitudes(u, blocks, Statistic::Above, sums, at::tensor({.1f, std::abs(bad)}));
    EXPECT_TRUE(std::isfinite(sums[0].item<float>()));
    EXPECT_TRUE(std::isnan(sums[2].item<float>()));
  }
}

TEST(Magnitudes, RefuseWhatDoesNotFit) {
  CodeBlocks blocks({{0, 5}, {5, 7}});
  EXPECT_THROW(
      magnitudes(at::zeros({11}), blocks, Statistic::Largest, at::empty({2})), std::logic_error);
  EXPECT_THROW(
      magnitudes(at::zeros({12}), blocks, Statistic::Moments, at::empty({2})), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
