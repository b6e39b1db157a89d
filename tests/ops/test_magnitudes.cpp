#include "ops/magnitudes.h"

#include <ATen/ops/empty.h>
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
  for (const bool in_windows : {false, true}) {
    CodeBlocks blocks(tensors, in_windows);
    const at::Tensor u = randn(blocks.end(), 3);
    const at::Tensor sums = at::empty({blocks.tensors()});
    const at::Tensor largest = at::empty({blocks.tensors()});
    const at::Tensor both = at::empty({2 * blocks.tensors()});
    magnitudes(u, blocks, Statistic::Sum, sums);
    magnitudes(u, blocks, Statistic::Largest, largest);
    magnitudes(u, blocks, Statistic::Moments, both);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto t = static_cast<std::int64_t>(i);
      const at::Tensor part = u.narrow(0, tensors[i].begin, tensors[i].numel).abs().to(at::kDouble);
      const auto squares = part.square().sum().item<double>();
      const auto sum = part.sum().item<double>();
      EXPECT_NEAR(sums[t].item<double>(), sum, 1e-6 * sum);
      EXPECT_EQ(largest[t].item<double>(), part.max().item<double>());
      EXPECT_NEAR(both[2 * t].item<double>(), squares, 1e-6 * squares);
      EXPECT_EQ(both[2 * t + 1].item<float>(), sums[t].item<float>());
    }
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
    magnitudes(u, blocks, Statistic::Sum, results);
    EXPECT_TRUE(std::isfinite(results[0].item<float>()));
    EXPECT_FALSE(std::isfinite(results[1].item<float>()));
  }
}

TEST(Magnitudes, RefuseWhatDoesNotFit) {
  CodeBlocks blocks({{0, 5}, {5, 7}});
  EXPECT_THROW(
      magnitudes(at::zeros({11}), blocks, Statistic::Sum, at::empty({2})), std::logic_error);
  EXPECT_THROW(
      magnitudes(at::zeros({12}), blocks, Statistic::Moments, at::empty({2})), std::logic_error);
}

}  // namespace
}  // namespace abtrain::ops
