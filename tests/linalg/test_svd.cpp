#include "linalg/svd.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "error_of.h"
#include "linalg/matrices.h"

namespace abtrain::linalg {
namespace {

// Largest error of the singular values, relative to the largest of them.
double value_error(const std::vector<double>& got, const at::Tensor& exact) {
  return largest_difference(vector_of(got), exact) / std::max(exact.max().item<double>(), 1e-300);
}

std::vector<double> power_law(std::int64_t n, double exponent) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) {
    values.push_back(3 * std::pow(static_cast<double>(i + 1), exponent));
  }
  return values;
}

class SvdShapes : public testing::TestWithParam<MatrixShape> {
 protected:
  std::int64_t m() const {
    return GetParam().first;
  }
  std::int64_t n() const {
    return GetParam().second;
  }
  at::Tensor weight() const {
    return noise(m(), n()).to(at::kFloat);
  }
};

TEST_P(SvdShapes, ValuesAgreeWithGesdd) {
  for (const auto& w :
       {weight(), with_spectrum(m(), power_law(n(), -1)).to(at::kFloat),
        with_spectrum(m(), power_law(n(), -4)).to(at::kFloat)}) {
    const Decomposition d(w, "w");
    EXPECT_LT(value_error(d.singular_values(), gesdd(w).s), 2e-7);
    EXPECT_TRUE(std::is_sorted(d.singular_values().rbegin(), d.singular_values().rend()));
  }
}

TEST_P(SvdShapes, VectorsAreOrthonormalAndDiagonalise) {
  const auto w = weight();
  const Decomposition d(w, "w");
  const auto right = d.right(n());
  EXPECT_LT(distance_from_orthonormal(right), 1e-12);
  const auto rotated = at::mm(w.to(at::kDouble), right);
  const auto gram = at::mm(rotated.t(), rotated);
  const auto expected = vector_of(d.singular_values()).square().diag();
  EXPECT_LT(largest_difference(gram, expected), 1e-12 * expected.max().item<double>());
}

TEST_P(SvdShapes, FactorsAreTheBestOfTheirRankAndBalanced) {
  const auto w = with_spectrum(m(), power_law(n(), -1)).to(at::kFloat);
  const auto s = gesdd(w).s;
  const Decomposition d(w, "w");
  for (const auto rank : {std::int64_t{1}, (n() + 2) / 3, n()}) {
    const auto pair = d.factors(w, rank);
    ASSERT_EQ(pair.a.sizes(), (std::vector<std::int64_t>{m(), rank}));
    ASSERT_EQ(pair.b.sizes(), (std::vector<std::int64_t>{rank, n()}));
    EXPECT_EQ(pair.a.scalar_type(), at::kFloat);
    EXPECT_EQ(pair.b.scalar_type(), at::kFloat);
    const auto a = pair.a.to(at::kDouble);
    const auto b = pair.b.to(at::kDouble);
    // Eckart and Young: what is lost is the tail of the spectrum.
    const double lost = w.to(at::kDouble).sub(at::mm(a, b)).square().sum().item<double>();
    const double tail = s.slice(0, rank).square().sum().item<double>();
    EXPECT_NEAR(lost, tail, 1e-6 * s.square().sum().item<double>());
    const auto kept = s.slice(0, 0, rank).diag();
    EXPECT_LT(largest_difference(at::mm(a.t(), a), kept), 1e-5);
    EXPECT_LT(largest_difference(at::mm(b, b.t()), kept), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SvdShapes,
    testing::Values(
        MatrixShape{1, 1}, MatrixShape{9, 1}, MatrixShape{2, 2}, MatrixShape{8, 8},
        MatrixShape{64, 64}, MatrixShape{65, 64}, MatrixShape{147, 64}, MatrixShape{300, 17},
        MatrixShape{129, 127}, MatrixShape{600, 200}),
    [](const auto& shape) {
      return std::to_string(shape.param.first) + "x" + std::to_string(shape.param.second);
    });

// Of every block of a grid: its own best factors, and values whose squares are
// sums over the blocks.
TEST(Svd, AGridIsDecomposedBlockByBlock) {
  constexpr std::int64_t kGrid = 3, kKept = 4;
  const auto w = noise(kGrid * kGrid * 20, 12).to(at::kFloat).view({kGrid, kGrid, 20, 12});
  const Decomposition d(w, "w");
  const auto pair = d.factors(w, kKept);
  ASSERT_EQ(pair.a.sizes(), (std::vector<std::int64_t>{kGrid, kGrid, 20, kKept}));
  ASSERT_EQ(pair.b.sizes(), (std::vector<std::int64_t>{kGrid, kGrid, kKept, 12}));
  at::Tensor squares = at::zeros({12}, at::kDouble);
  for (std::int64_t b = 0; b < kGrid; ++b) {
    for (std::int64_t c = 0; c < kGrid; ++c) {
      const auto exact = gesdd(w[b][c]);
      squares += exact.s.square();
      const auto best = at::mm(
          exact.u.slice(1, 0, kKept).mul(exact.s.slice(0, 0, kKept)),
          exact.v.slice(1, 0, kKept).t());
      EXPECT_LT(largest_difference(at::mm(pair.a[b][c], pair.b[b][c]), best), 1e-5);
      const auto one = Decomposition(w[b][c], "w").factors(w[b][c], kKept);
      EXPECT_TRUE(pair.a[b][c].equal(one.a));
      EXPECT_TRUE(pair.b[b][c].equal(one.b));
    }
  }
  EXPECT_LT(value_error(d.singular_values(), squares.sqrt()), 2e-7);
}

// numpy.linalg.svd of [[4, 0], [3, -5], [0, 1]], float64.
TEST(Svd, KnownMatrix) {
  auto w = at::empty({3, 2});
  const float entries[] = {4, 0, 3, -5, 0, 1};
  std::copy(entries, entries + 6, w.mutable_data_ptr<float>());
  // W^T W = [[25, -15], [-15, 26]].
  const double middle = 25.5;
  const double spread = std::sqrt(0.25 + 225);
  const auto s = Decomposition(w, "w").singular_values();
  EXPECT_NEAR(s[0], std::sqrt(middle + spread), 1e-12);
  EXPECT_NEAR(s[1], std::sqrt(middle - spread), 1e-12);
  const auto exact = gesdd(w);
  EXPECT_NEAR(exact.s[0].item<double>(), s[0], 1e-12);
  EXPECT_LT(largest_difference(at::mm(exact.u.mul(exact.s), exact.v.t()), w), 1e-12);
}

TEST(Svd, LayoutAndTypeDoNotMatter) {
  const auto plain = noise(90, 36).to(at::kBFloat16).to(at::kFloat);
  const Decomposition expected(plain, "w");
  const auto by_columns = plain.t().contiguous().t();
  auto wide = at::zeros({90, 72});
  wide.slice(1, 0, 72, 2).copy_(plain);
  auto tall = at::zeros({180, 36});
  tall.slice(0, 1, 180, 2).copy_(plain);
  for (const auto& w :
       {by_columns, wide.slice(1, 0, 72, 2), tall.slice(0, 1, 180, 2), plain.to(at::kBFloat16),
        plain.to(at::kDouble)}) {
    const Decomposition got(w, "w");
    EXPECT_EQ(got.singular_values(), expected.singular_values());
    EXPECT_TRUE(got.right(36).equal(expected.right(36)));
    EXPECT_LT(largest_difference(got.factors(w, 5).a, expected.factors(plain, 5).a), 1e-5);
  }
}

TEST(Svd, ScaleDoesNotMatter) {
  const auto w = noise(40, 24);
  const auto s = gesdd(w).s;
  for (const double scale : {1e-20, 1e20, 1e-200, 1e200}) {
    const auto type = std::abs(std::log10(scale)) > 38 ? at::kDouble : at::kFloat;
    const auto scaled = w.mul(scale).to(type);
    const Decomposition d(scaled, "w");
    EXPECT_LT(value_error(d.singular_values(), s.mul(scale)), 2e-7) << scale;
    if (type == at::kFloat) {
      const auto pair = d.factors(scaled, 24);
      const auto product = at::mm(pair.a.to(at::kDouble), pair.b.to(at::kDouble));
      EXPECT_LT(largest_difference(product.div(scale), w), 1e-5) << scale;
    }
  }
}

TEST(Svd, ZeroMatrix) {
  const auto w = at::zeros({12, 5});
  const Decomposition d(w, "w");
  EXPECT_EQ(d.singular_values(), std::vector<double>(5, 0.0));
  EXPECT_LT(distance_from_orthonormal(d.right(5)), 1e-12);
  const auto pair = d.factors(w, 3);
  EXPECT_EQ(pair.a.abs().max().item<float>(), 0);
  EXPECT_EQ(pair.b.abs().max().item<float>(), 0);
}

TEST(Svd, WhatIsNotResolvedCountsAsZero) {
  std::vector<double> values(40, 0.0);
  std::fill(values.begin(), values.begin() + 7, 2.0);
  const auto w = with_spectrum(90, values);
  const Decomposition d(w, "w");
  for (int i = 0; i < 40; ++i) {
    EXPECT_NEAR(d.singular_values()[i], i < 7 ? 2 : 0, 1e-9);
  }
  EXPECT_EQ(d.singular_values()[7], 0);
  EXPECT_LT(distance_from_orthonormal(d.right(40)), 1e-12);
  const auto pair = d.factors(w, 10);
  EXPECT_LT(largest_difference(at::mm(pair.a, pair.b), w), 1e-5);
  EXPECT_EQ(pair.a.slice(1, 7).abs().max().item<float>(), 0);
  EXPECT_EQ(pair.b.slice(0, 7).abs().max().item<float>(), 0);
}

// All singular values one, as after orthogonal initialization.
TEST(Svd, OneClusterOfAll) {
  const auto w = orthonormal_noise(200, 96, 3).to(at::kFloat);
  const Decomposition d(w, "w");
  for (const double s : d.singular_values()) {
    EXPECT_NEAR(s, 1, 1e-6);
  }
  EXPECT_LT(distance_from_orthonormal(d.right(96)), 1e-12);
  const auto pair = d.factors(w, 96);
  EXPECT_LT(largest_difference(at::mm(pair.a, pair.b), w), 1e-5);
}

TEST(Svd, NotFiniteNamesTheLayer) {
  for (const double bad : {double(NAN), double(INFINITY), -double(INFINITY)}) {
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      auto w = noise(30, 20).to(type);
      w[29][19] = bad;
      expect_error(
          [&] { const Decomposition refused(w, "layer3.conv2"); }, ErrorKind::Diverged,
          {"layer3.conv2"});
    }
  }
}

TEST(Svd, LargestEntryOfEachRightVectorIsPositive) {
  const auto v = Decomposition(noise(80, 33), "w").right(33);
  for (std::int64_t c = 0; c < 33; ++c) {
    const auto column = v.select(1, c);
    EXPECT_EQ(column.max().item<double>(), column.abs().max().item<double>());
  }
}

TEST(Svd, FewVectorsAreTheFirstOfAll) {
  const auto w = noise(150, 70).to(at::kFloat);
  const Decomposition d(w, "w");
  EXPECT_EQ(d.right(9).size(1), 9);
  EXPECT_LT(largest_difference(d.right(9), d.right(70).slice(1, 0, 9)), 1e-10);
}

TEST(Svd, SameBitsEveryTime) {
  const auto w = noise(400, 130).to(at::kFloat);
  const auto first = Decomposition(w, "w").factors(w, 40);
  const auto second = Decomposition(w, "w").factors(w, 40);
  EXPECT_TRUE(first.a.equal(second.a));
  EXPECT_TRUE(first.b.equal(second.b));
}

TEST(Svd, RankOutsideTheSpectrumIsABug) {
  const auto w = noise(6, 4);
  const Decomposition d(w, "w");
  EXPECT_THROW(d.factors(w, 5), std::logic_error);
  EXPECT_THROW(d.factors(w, 0), std::logic_error);
  EXPECT_THROW(Decomposition(w.t(), "w"), std::logic_error);
}

TEST(Balance, LongestFirst) {
  EXPECT_EQ(balance({1, 5, 4, 3, 3}, 2), (std::vector<int>{1, 0, 1, 1, 0}));
  EXPECT_EQ(balance({2, 2, 2}, 1), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(balance({}, 3), std::vector<int>{});
}

// Graham 1969: never above 4/3 of the best.
TEST(Balance, LargestLoadIsNearTheMean) {
  std::vector<double> costs;
  double whole = 0;
  for (int i = 0; i < 54; ++i) {
    costs.push_back(1 + i % 7 * (i % 5));
    whole += costs.back();
  }
  for (const int workers : {2, 3, 8}) {
    std::vector<double> load(workers, 0);
    const auto owner = balance(costs, workers);
    for (std::size_t i = 0; i < costs.size(); ++i) {
      load[owner[i]] += costs[i];
    }
    EXPECT_LT(*std::max_element(load.begin(), load.end()), 4.0 / 3 * whole / workers);
  }
}

TEST(Balance, CostGrowsWithBothSides) {
  EXPECT_GT(decomposition_cost(200, 100), decomposition_cost(100, 100));
  EXPECT_GT(decomposition_cost(200, 101), decomposition_cost(200, 100));
  EXPECT_GT(decomposition_cost(1, 1), 0);
}

}  // namespace
}  // namespace abtrain::linalg
