#include "linalg/range_finder.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "linalg/matrices.h"
#include "linalg/svd.h"

namespace abtrain::linalg {
namespace {

struct Shaped {
  std::string name;
  std::function<double(double i, double n)> value;  // i = 0 .. n - 1
};

std::vector<Shaped> spectra() {
  const auto steps = [](double i, double n) { return i < n / 20 ? 1.0 : i < n / 6 ? 0.5 : 0.03; };
  return {
      {"exponential", [](double i, double n) { return std::exp(-15 * i / n); }},
      {"steep", [](double i, double n) { return std::exp(-60 * i / n); }},
      {"power", [](double i, double) { return 1 / (1 + 1.013 * i); }},
      {"root", [](double i, double) { return 1 / std::sqrt(1 + i); }},
      {"linear", [](double i, double n) { return 1 - i / n; }},
      {"flat", [](double, double) { return 1.0; }},
      {"dominant", [](double i, double) { return i == 0 ? 9.0 : 0.01; }},
      {"half dominant", [](double i, double) { return i == 0 ? 2.0 : 1.0; }},
      {"low rank", [](double i, double n) { return i < n / 10 ? 2.0 : 0.0; }},
      {"three", [](double i, double) { return i < 3 ? 3 - i : 0.0; }},
      {"steps", steps},
      {"spikes over a floor",
       [](double i, double n) { return i < n / 16 ? 2 - 16 * i / n : 0.13; }},
      // Forty values within a millionth of the cut of 0.15, on both sides.
      {"cluster at the cut",
       [](double i, double n) {
         return i < n / 25        ? 1.0
                : i < n / 25 + 40 ? 0.15 * (1 + 5e-8 * (n / 25 + 19.3 - i))
                                  : 0.15 * std::exp(-20 * (i - n / 25 - 39) / n);
       }},
      {"multiple at the cut",
       [](double i, double n) { return i < n / 25        ? 1.0
                                       : i < n / 25 + 50 ? 0.1500001
                                                         : 0.05; }},
      {"multiple below the cut",
       [](double i, double n) { return i < n / 25        ? 1.0
                                       : i < n / 25 + 50 ? 0.1499999
                                                         : 0.05; }},
  };
}

std::vector<RankRule> rules() {
  std::vector<RankRule> all;
  for (const double cut : {0.15, 0.4, 0.02}) {
    all.push_back({RankRuleName::Sigma, cut});
  }
  for (const double keep : {0.5, 0.9, 0.999}) {
    all.push_back({RankRuleName::Energy, 0.15, keep});
  }
  for (const std::int64_t least : {17, 60}) {
    all.push_back({.rule = RankRuleName::Energy, .keep = 0.5, .least = least});
  }
  for (const std::int64_t rank : {1, 17, 40}) {
    all.push_back({RankRuleName::Fixed, 0.15, 0.9, rank});
  }
  all.push_back({.rule = RankRuleName::Ratio, .ratio = 8});
  return all;
}

// Small products wait for each other more than they gain.
struct OneThread {
  int before = at::get_num_threads();
  OneThread() {
    at::set_num_threads(1);
  }
  ~OneThread() {
    at::set_num_threads(before);
  }
};

using Case = std::tuple<std::int64_t, std::int64_t>;
class PartialSvd : public testing::TestWithParam<Case> {};

// Whatever the search does, the rank is that of LAPACK's float64 spectrum, and
// what is kept is right.
TEST_P(PartialSvd, RankValuesAndFactorsAreThoseOfTheWholeSpectrum) {
  const auto [m, n] = GetParam();
  const OneThread one;
  int partial = 0;
  for (const auto& shape : spectra()) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) {
      values.push_back(shape.value(static_cast<double>(i), static_cast<double>(n)));
    }
    std::sort(values.rbegin(), values.rend());
    const auto w = with_spectrum(m, values, 5);
    const auto exact = gesdd(w);
    const double* s = exact.s.const_data_ptr<double>();
    std::vector<double> resolved(s, s + n);
    for (double& value : resolved) {
      value = value > 1e-7 * s[0] ? value : 0;
    }
    for (const auto& rule : rules()) {
      SCOPED_TRACE(
          shape.name + " rule " + std::to_string(static_cast<int>(rule.rule)) + " cut " +
          std::to_string(rule.cut) + " keep " + std::to_string(rule.keep) + " rank " +
          std::to_string(rule.rank) + " least " + std::to_string(rule.least));
      const auto wanted = choose_rank(rule, {"w", m, n, resolved});
      const auto d = Decomposition::partial(w, "w", rule, {});
      const auto got = choose_rank(rule, d.spectrum(m));
      partial += !d.is_whole();
      ASSERT_TRUE(got.decided);
      // Values within rounding of each other may be ordered either way.
      const auto level = wanted.rank > 0 ? s[wanted.rank - 1] : 0;
      const auto other = got.rank > 0 ? s[got.rank - 1] : 0;
      if (rule.rule != RankRuleName::Energy || level - other > 1e-9 * s[0]) {
        ASSERT_EQ(got.rank, wanted.rank);
      }
      EXPECT_NEAR(got.energy, wanted.energy, 1e-6);
      for (std::int64_t i = 0; i < got.rank; ++i) {
        ASSERT_NEAR(d.singular_values()[i], s[i], 2e-7 * s[0]) << i;
      }
      if (got.rank > 0) {
        EXPECT_LT(distance_from_orthonormal(d.right(got.rank)), 1e-11);
        const auto pair = d.factors(w, got.rank);
        const double lost =
            w.sub(at::mm(pair.a, pair.b).to(at::kDouble)).square().sum().item<double>();
        const double tail = exact.s.slice(0, got.rank).square().sum().item<double>();
        EXPECT_NEAR(lost, tail, 1e-6 * exact.s.square().sum().item<double>());
      }
    }
  }
  // Most of these need not the whole.
  EXPECT_GT(partial, 60);
}

INSTANTIATE_TEST_SUITE_P(
    All, PartialSvd, testing::Values(Case{200, 200}, Case{500, 257}), [](const auto& shape) {
      return std::to_string(std::get<0>(shape.param)) + "x" +
             std::to_string(std::get<1>(shape.param));
    });

}  // namespace
}  // namespace abtrain::linalg
