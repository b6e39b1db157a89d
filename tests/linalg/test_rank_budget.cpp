#include "linalg/rank_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "error_of.h"

namespace abtrain::linalg {
namespace {

Spectrum layer_of(std::int64_t m, std::int64_t n, std::vector<double> values) {
  return {"layer", m, n, std::move(values)};
}

double stored(const Spectrum& s, std::int64_t rank) {
  return static_cast<double>(rank == 0 ? s.m * s.n : rank * (s.m + s.n));
}

double lost(const Spectrum& s, std::int64_t rank) {
  double tail = 0;
  double whole = 0;
  for (std::int64_t i = 0; i < std::ssize(s.singular_values); ++i) {
    const double square = s.singular_values[i] * s.singular_values[i];
    whole += square;
    tail += rank != 0 && i >= rank ? square : 0;
  }
  return whole > 0 ? tail / whole : 0;
}

struct Outcome {
  double stored = 0;
  double lost = 0;
};

// The rank, a multiple, that a share of a layer's parameters pays for.
std::int64_t rank_for(const Spectrum& s, std::int64_t multiple, double share) {
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  const auto units = static_cast<std::int64_t>(share * m * n / (m + n)) / multiple;
  return std::max<std::int64_t>(1, units) * multiple;
}

// The best over all combinations of multiples (0 is dense) that are at least
// rank_for() that share.
double brute_force(
    const std::vector<Spectrum>& layers, std::int64_t multiple, double budget, double share,
    std::size_t layer = 0) {
  if (layer == layers.size()) {
    return 0;
  }
  double best = std::numeric_limits<double>::infinity();
  const auto& s = layers[layer];
  for (std::int64_t rank = 0; rank <= s.n; rank += multiple) {
    if (rank * (s.m + s.n) >= s.m * s.n || stored(s, rank) > budget ||
        (rank > 0 && rank < rank_for(s, multiple, share))) {
      continue;
    }
    best = std::min(
        best,
        lost(s, rank) + brute_force(layers, multiple, budget - stored(s, rank), share, layer + 1));
  }
  if (stored(s, 0) <= budget) {
    best = std::min(best, brute_force(layers, multiple, budget - stored(s, 0), share, layer + 1));
  }
  return best;
}

Outcome outcome_of(const std::vector<Spectrum>& layers, const std::vector<RankChoice>& choice) {
  Outcome outcome;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    outcome.stored += stored(layers[l], choice[l].rank);
    outcome.lost += lost(layers[l], choice[l].rank);
    EXPECT_NEAR(choice[l].energy, 1 - lost(layers[l], choice[l].rank), 1e-12);
    EXPECT_LT(choice[l].rank * (layers[l].m + layers[l].n), layers[l].m * layers[l].n);
  }
  return outcome;
}

std::vector<Spectrum> random_layers(unsigned seed) {
  Random random(seed, RandomPurpose::Test);
  std::vector<Spectrum> layers;
  for (unsigned l = 0; l < 3 + seed % 2; ++l) {
    const std::int64_t n = 2 + random.below(8);
    const std::int64_t m = n + random.below(20);
    const double decay = 2 * random.uniform();
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) {
      values.push_back((0.5 + random.uniform()) * std::pow(i + 1.0, -decay));
    }
    std::sort(values.rbegin(), values.rend());
    layers.push_back(layer_of(m, n, values));
  }
  return layers;
}

TEST(Budget, IsAsGoodAsBruteForce) {
  int cases = 0;
  int exact = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const auto layers = random_layers(seed);
    const double floor = seed % 2 * 0.7;
    const std::int64_t other = seed % 3 * 10;
    const std::int64_t multiple = 1 + seed / 2 % 2;
    double dense = static_cast<double>(other);
    double least = static_cast<double>(other);
    for (const auto& s : layers) {
      dense += stored(s, 0);
      least += std::min(stored(s, 0), stored(s, multiple));
    }
    for (const double ratio : {1.0, 1.1, 1.3, 1.6, 2.0, 3.0}) {
      if (dense / ratio < least) {
        continue;
      }
      const double budget = dense / ratio - static_cast<double>(other);
      const double share = floor * budget / (dense - static_cast<double>(other));
      double least_ranks = 0;
      for (const auto& s : layers) {
        least_ranks += std::min(stored(s, 0), stored(s, rank_for(s, multiple, share)));
      }
      if (least_ranks > budget) {
        continue;
      }
      const auto choice = choose_ranks(
          {.rule = RankRuleName::Budget, .ratio = ratio, .floor = floor, .multiple = multiple},
          layers, other);
      for (std::size_t l = 0; l < layers.size(); ++l) {
        if (choice[l].rank > 0) {
          EXPECT_GE(choice[l].rank, rank_for(layers[l], multiple, share));
          EXPECT_EQ(choice[l].rank % multiple, 0);
        }
      }
      const auto got = outcome_of(layers, choice);
      const double best = brute_force(layers, multiple, budget, share);
      EXPECT_GE(dense / (got.stored + static_cast<double>(other)), ratio);
      EXPECT_LE(got.lost, best * 1.25 + 1e-12) << "seed " << seed << " ratio " << ratio;
      ++cases;
      exact += got.lost <= best + 1e-12;
    }
  }
  EXPECT_GT(cases, 200);
  EXPECT_GT(exact, cases * 19 / 20) << cases;
}

// A grid's ranks cost and keep as much as those of k^2 layers of its blocks'
// sizes, all cut alike.
TEST(Budget, AGridIsItsBlocksCutAlike) {
  const std::vector<double> values = {5, 4, 2, 1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01};
  const Spectrum plain = {"plain", 60, 40, std::vector<double>(40, 1)};
  const Spectrum grid = {"grid", 80, 40, values, 4};
  for (const double ratio : {1.5, 2.5, 4.0}) {
    const RankRule rule{.rule = RankRuleName::Budget, .ratio = ratio};
    const auto got = choose_ranks(rule, {plain, grid}, 100);
    const double whole = 60 * 40 + 80 * 40 + 100;
    const auto stored = [](const RankChoice& choice, const Spectrum& s) {
      const std::int64_t rank = choice.rank;
      return static_cast<double>(rank > 0 ? rank * (s.m + s.n) : s.m * s.n);
    };
    const double used = stored(got[0], plain) + stored(got[1], grid) + 100;
    EXPECT_LE(used, whole / ratio);
    EXPECT_GT(used + 4 * 120, whole / ratio);  // no step of either fits
    EXPECT_EQ(got[1].rank % 4, 0);
    EXPECT_GT(got[1].rank, 0);
    double kept = 0, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      all += values[i] * values[i];
      kept += static_cast<std::int64_t>(i) < got[1].rank / 4 ? values[i] * values[i] : 0;
    }
    EXPECT_NEAR(got[1].energy, kept / all, 1e-12);
  }
}

TEST(Budget, GetsTheRatioAskedFor) {
  std::vector<Spectrum> layers;
  for (int l = 0; l < 12; ++l) {
    std::vector<double> values;
    for (int i = 0; i < 128; ++i) {
      values.push_back(std::pow(i + 1.0, -0.2 * (l % 4)));
    }
    layers.push_back(layer_of(512 + 64 * l, 128, values));
  }
  const std::int64_t other = 3000;
  double dense = other;
  for (const auto& s : layers) {
    dense += stored(s, 0);
  }
  for (const double ratio : {2.0, 10.0, 40.0}) {
    const auto got = outcome_of(
        layers, choose_ranks({.rule = RankRuleName::Budget, .ratio = ratio}, layers, other));
    EXPECT_GE(dense / (got.stored + other), ratio);
    // No layer could have had one rank more.
    EXPECT_GT(got.stored + other + 512 + 128, dense / ratio);
  }
}

// A flat layer loses nothing by going dense, a steep one needs little.
TEST(Budget, ALayerMayGoDense) {
  const std::vector<Spectrum> layers{
      layer_of(20, 20, std::vector<double>(20, 1)), layer_of(400, 20, {1, 1e-3, 0, 0})};
  const auto choices =
      choose_ranks({.rule = RankRuleName::Budget, .ratio = 8400.0 / 1300}, layers, 0);
  EXPECT_EQ(choices[0].rank, 0);
  EXPECT_EQ(choices[0].energy, 1);
  EXPECT_EQ(choices[1].rank, 2);
}

TEST(Budget, NothingIsSpentOnZeroLayers) {
  const std::vector<Spectrum> layers{
      layer_of(50, 30, std::vector<double>(30, 0)), layer_of(50, 30, {3, 2, 1})};
  const auto choices = choose_ranks({.rule = RankRuleName::Budget, .ratio = 2}, layers, 0);
  EXPECT_EQ(choices[0].rank, 1);
  EXPECT_EQ(choices[1].rank, 3);
}

TEST(Budget, OutOfReachSaysWhatIsInReach) {
  const std::vector<Spectrum> layers{layer_of(90, 10, {1, 1})};
  expect_error(
      [&] { choose_ranks({.rule = RankRuleName::Budget, .ratio = 40}, layers, 0); },
      ErrorKind::Config, {"at most 9.00", "got 40"});
  EXPECT_EQ(choose_ranks({.rule = RankRuleName::Budget, .ratio = 9}, layers, 0)[0].rank, 1);
}

}  // namespace
}  // namespace abtrain::linalg
