#include "report/welch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <tuple>

#include "report/compare.h"

namespace abtrain::report {
namespace {

TEST(Welch, IsStudentsDistributionInClosedForm) {
  // Equal variances of 2, two values each: 2 degrees of freedom, t = sqrt(8).
  const double t = std::sqrt(8);
  EXPECT_NEAR(*welch_p({0, 2}, {4, 6}), 1 - t / std::sqrt(2 + t * t), 1e-12);
  // Only one sample varies: 1 degree of freedom, t = 4.
  EXPECT_NEAR(*welch_p({0, 2}, {5, 5}), 1 - 2 / std::numbers::pi * std::atan(4), 1e-12);
  // Three values each with a variance of 1: 4 degrees, t = 3 / sqrt(2 / 3).
  const double u = 3 / std::sqrt(2.0 / 3);
  const double share = 1 + u * u / 4;
  EXPECT_NEAR(
      *welch_p({0, 1, 2}, {3, 4, 5}), 1 - 0.75 * u / std::sqrt(share) * (1 - u * u / (12 * share)),
      1e-12);
}

TEST(Welch, WhatHasNoSpread) {
  EXPECT_FALSE(welch_p({1}, {2, 3}));
  EXPECT_FALSE(welch_p({1, 2}, {}));
  EXPECT_EQ(welch_p({1, 1}, {1, 1}), 1);
  EXPECT_EQ(welch_p({1, 1}, {2, 2}), 0);
  // Means of equal values that differ by rounding.
  EXPECT_EQ(welch_p({0.7, 0.7, 0.7}, {0.7, 0.7}), 1);
}

// Student's test of two samples of n values with equal spreads finds these gaps (in spreads) with a
// power of 80 %: R's power.t.test(n, power = 0.8). Welch's needs more where samples are small,
// because their variances differ by chance.
TEST(Welch, TheGapThatCouldBeSeenIsThatOfPublishedTables) {
  const auto sample = [](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(i % 2 == 0 ? 1 : -1);
    }
    const double sd = *standard_deviation(values);
    for (double& value : values) {
      value /= sd;
    }
    return values;
  };
  EXPECT_NEAR(*visible_gap(sample(64), sample(64)), 0.4992, 0.002);
  EXPECT_NEAR(*visible_gap(sample(26), sample(26)), 0.7923, 0.004);
  const double of_ten = *visible_gap(sample(10), sample(10));
  EXPECT_GT(of_ten, 1.3249);
  EXPECT_LT(of_ten, 1.35);
  EXPECT_FALSE(visible_gap({1}, {1, 2}));
  EXPECT_EQ(visible_gap({1, 1}, {1, 1}), 0);
}

TEST(Welch, TheGapThatCouldBeSeenIsFoundInFourOfFiveComparisons) {
  std::mt19937 random(1);
  const auto drawn = [&](std::size_t count, double mean, double sd) {
    std::normal_distribution<double> normal(mean, sd);
    std::vector<double> values(count);
    std::ranges::generate(values, [&] { return normal(random); });
    return values;
  };
  // Two and three values of the standard deviation that is asked for.
  const auto exact = [](std::size_t count, double sd) {
    std::vector<double> values(count, 0.0);
    values.front() = 1;
    values.back() = -1;
    const double own = *standard_deviation(values);
    for (double& value : values) {
      value *= sd / own;
    }
    return values;
  };
  constexpr int kTries = 4000;
  for (const auto& [n, m, sd] : {std::tuple{5, 5, 1.0}, {3, 3, 1.0}, {5, 3, 3.0}}) {
    const double gap = *visible_gap(exact(n, 1), exact(m, sd));
    int found = 0;
    for (int i = 0; i < kTries; ++i) {
      found += *welch_p(drawn(n, 0, 1), drawn(m, gap, sd)) < 0.05 ? 1 : 0;
    }
    EXPECT_NEAR(found / static_cast<double>(kTries), 0.8, 0.02) << n << " " << m << " " << gap;
  }
}

}  // namespace
}  // namespace abtrain::report
