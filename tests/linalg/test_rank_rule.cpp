#include "linalg/rank_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace abtrain::linalg {
namespace {

Spectrum spectrum(std::int64_t m, std::int64_t n, std::vector<double> values) {
  return {"layer", m, n, std::move(values)};
}

std::int64_t rank_by(const RankRule& rule, const Spectrum& s) {
  return choose_rank(rule, s).rank;
}

TEST(RankRule, SigmaIsStrict) {
  const auto s = spectrum(1000, 6, {4, 2, 1, 1, 0.5, 0});
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.25}, s), 2);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.2499}, s), 4);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.9}, s), 1);
}

TEST(RankRule, SigmaOfZeroIsRankOne) {
  const auto choice =
      choose_rank({.rule = RankRuleName::Sigma}, spectrum(10, 8, std::vector<double>(8, 0)));
  EXPECT_EQ(choice.rank, 1);
  EXPECT_EQ(choice.energy, 1);
}

TEST(RankRule, EnergyIsTheSmallestThatKeepsEnough) {
  // Squares 9, 4, 2, 1: shares 0.5625, 0.8125, 0.9375, 1.
  const auto s = spectrum(1000, 5, {3, 2, std::sqrt(2.0), 1, 0});
  const auto keep = [&](double share) {
    return rank_by({.rule = RankRuleName::Energy, .keep = share}, s);
  };
  EXPECT_EQ(keep(0.1), 1);
  EXPECT_EQ(keep(0.5625), 1);
  EXPECT_EQ(keep(0.57), 2);
  EXPECT_EQ(keep(0.8125), 2);
  EXPECT_EQ(keep(0.9), 3);
  EXPECT_EQ(keep(1.0), 4);
}

TEST(RankRule, EnergyOfEqualValuesIsNotOffByOne) {
  const auto s = spectrum(1000, 10, std::vector<double>(10, 0.1));
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.9}, s), 9);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.3}, s), 3);
}

// However little energy is asked for, a later cut keeps the rank of the first.
TEST(RankRule, EnergyGoesNoLowerThanTheFirstCut) {
  // Squares 9, 4, 2, 1.
  const auto s = spectrum(1000, 5, {3, 2, std::sqrt(2.0), 1, 0});
  const auto choose = [&](double keep, std::int64_t least) {
    return choose_rank({.rule = RankRuleName::Energy, .keep = keep, .least = least}, s);
  };
  EXPECT_EQ(choose(0.57, 0).rank, 2);
  EXPECT_EQ(choose(0.57, 1).rank, 2);
  EXPECT_EQ(choose(0.57, 3).rank, 3);
  EXPECT_NEAR(choose(0.57, 3).energy, 15.0 / 16, 1e-15);
  EXPECT_EQ(choose(1, 3).rank, 4);
  // It may rise until it saves nothing: 60 * 30 / 90 = 20.
  const auto flat = spectrum(60, 30, std::vector<double>(30, 1));
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.5, .least = 5}, flat), 15);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.9, .least = 5}, flat), 0);
  // Also of zeros, whose energy any rank keeps.
  EXPECT_EQ(
      rank_by(
          {.rule = RankRuleName::Energy, .least = 5}, spectrum(60, 30, std::vector<double>(30, 0))),
      5);
  // No other rule knows it.
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.9, .least = 3}, s), 1);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 2, .least = 3}, s), 2);
}

TEST(RankRule, FixedIsCutAtN) {
  const auto s = spectrum(1000, 6, {6, 5, 4, 3, 2, 1});
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 4}, s), 4);
  // 6 * 1006 > 6000: all of n saves nothing, so the layer stays dense.
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 48}, s), 0);
}

TEST(RankRule, RatioRoundsDown) {
  // 1200 * 600 / 1800 = 400.
  const auto s = spectrum(1200, 600, std::vector<double>(600, 1));
  EXPECT_EQ(rank_by({.rule = RankRuleName::Ratio, .ratio = 10}, s), 40);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Ratio, .ratio = 10.1}, s), 39);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Ratio, .ratio = 1000}, s), 1);
}

TEST(RankRule, RanksAreMultiples) {
  // Saves up to a rank of 1200 * 600 / 1800 = 400.
  const auto flat = spectrum(1200, 600, std::vector<double>(600, 1));
  const auto ratio = [&](double r, std::int64_t multiple) {
    return rank_by({.rule = RankRuleName::Ratio, .ratio = r, .multiple = multiple}, flat);
  };
  EXPECT_EQ(ratio(10, 16), 32);
  EXPECT_EQ(ratio(12.5, 16), 32);
  EXPECT_EQ(ratio(100, 16), 16);  // one multiple, though it is more than asked for
  EXPECT_EQ(ratio(100, 512), 0);
  const auto fixed = [&](std::int64_t rank) {
    return rank_by({.rule = RankRuleName::Fixed, .rank = rank, .multiple = 8}, flat);
  };
  EXPECT_EQ(fixed(17), 24);
  EXPECT_EQ(fixed(24), 24);
  EXPECT_EQ(fixed(392), 392);
  EXPECT_EQ(fixed(393), 0);  // 400 saves nothing
  // Half of the energy is kept by 300 of 600 equal values.
  const RankRule energy{.rule = RankRuleName::Energy, .keep = 0.5, .multiple = 8};
  EXPECT_EQ(rank_by(energy, flat), 304);
  EXPECT_NEAR(choose_rank(energy, flat).energy, 304.0 / 600, 1e-12);
}

// Every rank is a multiple of the grid, whose blocks each keep a k-th of it.
TEST(RankRule, InAGridRanksCountAllBlocks) {
  Spectrum s = spectrum(1200, 600, {8, 4, 2, 1});
  s.grid = 4;
  EXPECT_EQ(largest_saving_rank(s), 396);
  EXPECT_EQ(lost_energy(s).size(), 151u);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.3}, s), 8);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.9}, s), 8);  // 80 of 85
  EXPECT_NEAR(choose_rank({.rule = RankRuleName::Energy, .keep = 0.9}, s).energy, 80.0 / 85, 1e-12);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Energy, .keep = 0.9, .least = 12}, s), 12);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 10}, s), 12);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Ratio, .ratio = 10.1}, s), 36);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Ratio, .ratio = 1000}, s), 4);
  // The smallest multiple of both 4 and 6 above 8.
  EXPECT_EQ(rank_by({.rule = RankRuleName::Sigma, .cut = 0.3, .multiple = 6}, s), 12);
}

TEST(RankRule, ExpectedRanks) {
  EXPECT_EQ(expected_rank({.rule = RankRuleName::Ratio, .ratio = 10}, 1200, 600), 40);
  EXPECT_EQ(expected_rank({.rule = RankRuleName::Fixed, .rank = 7}, 1200, 600), 7);
  EXPECT_EQ(expected_rank({.rule = RankRuleName::Energy}, 1200, 600), 600);
  // (720,000 + 80,000) / 8 = 80,000 + 20,000: a ratio of 36.
  const RankRule even = even_rule({.rule = RankRuleName::Budget, .ratio = 8}, 720'000, 80'000);
  EXPECT_NEAR(even.ratio, 36, 1e-12);
  EXPECT_EQ(expected_rank(even, 1200, 600), 11);
}

TEST(RankRule, BreakEvenStaysDense) {
  // 60 * 30 / 90 = 20.
  const auto s = spectrum(60, 30, std::vector<double>(30, 1));
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 19}, s), 19);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 20}, s), 0);
  EXPECT_EQ(rank_by({.rule = RankRuleName::Fixed, .rank = 1}, spectrum(60, 1, {1})), 0);
}

TEST(RankRule, EnergyKeptIsReported) {
  const auto choice =
      choose_rank({.rule = RankRuleName::Fixed, .rank = 2}, spectrum(1000, 3, {2, 1, 1}));
  EXPECT_NEAR(choice.energy, 5.0 / 6, 1e-15);
  // Squares of these over- or underflow.
  for (const double scale : {1e200, 1e-200}) {
    EXPECT_NEAR(
        choose_rank(
            {.rule = RankRuleName::Fixed, .rank = 2}, spectrum(1000, 3, {2 * scale, scale, scale}))
            .energy,
        5.0 / 6, 1e-15);
  }
}

TEST(RankRule, WrongSpectraAreRefused) {
  const RankRule rule;
  EXPECT_THROW(choose_rank(rule, spectrum(3, 4, {1})), Error);
  EXPECT_THROW(choose_rank(rule, spectrum(4, 3, {})), Error);
  EXPECT_THROW(
      choose_rank(rule, spectrum(4, 3, {std::numeric_limits<double>::quiet_NaN()})), Error);
}

TEST(RankRule, OnlyBudgetNeedsAllLayers) {
  EXPECT_EQ(kind_of({.rule = RankRuleName::Budget}).needs, RankNeeds::All);
  EXPECT_EQ(kind_of({.rule = RankRuleName::Sigma}).needs, RankNeeds::Values);
  const std::vector<Spectrum> layers{spectrum(100, 2, {1, 0}), spectrum(100, 4, {1, 1, 1, 0})};
  const auto choices = choose_ranks({.rule = RankRuleName::Sigma}, layers, 0);
  EXPECT_EQ(choices[0].rank, 1);
  EXPECT_EQ(choices[1].rank, 3);
}

}  // namespace
}  // namespace abtrain::linalg
