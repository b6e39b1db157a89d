#include "linalg/rank_rule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/mapped.h"
#include "linalg/rank_budget.h"

namespace abtrain::linalg {
namespace {

// Products such as 0.07 * 100 land slightly off the whole number that is meant.
constexpr double kHair = 1e-9;

std::int64_t sigma_rank(const RankRule& rule, const Spectrum& s) {
  const auto& values = s.singular_values;
  return s.grid * std::count_if(values.begin(), values.end(), [&](double value) {
           return value > rule.cut * values.front();
         });
}

std::int64_t energy_rank(const RankRule& rule, const Spectrum& s) {
  // The tolerance is relative: keep = 1 still asks for all values that are not exactly zero.
  const auto lost = lost_energy(s);
  const double allowed = (1 - rule.keep) * (1 + kHair);
  const auto enough =
      std::find_if(lost.begin(), lost.end(), [&](double l) { return l <= allowed; });
  const std::int64_t rank = enough == lost.end() ? s.n : s.grid * (enough - lost.begin());
  return std::max(rank, rule.least);
}

std::int64_t fixed_rank(const RankRule& rule, const Spectrum& s) {
  return std::min(rule.rank, s.n);
}

std::int64_t ratio_rank(const RankRule& rule, const Spectrum& s) {
  const auto m = static_cast<double>(s.m);
  const auto n = static_cast<double>(s.n);
  return static_cast<std::int64_t>(std::floor(m * n / (m + n) / rule.ratio + kHair));
}

constexpr std::array kRankRules = {
    // r = #{ s_i > cut * s_1 }, strict
    RankRuleKind{RankRuleName::Sigma, "sigma", "cut", RankNeeds::Values, sigma_rank},
    // smallest r >= least with sum_{i<=r} s_i^2 >= keep * sum s_i^2
    RankRuleKind{RankRuleName::Energy, "energy", "keep", RankNeeds::Values, energy_rank},
    // r = min(rank, n)
    RankRuleKind{RankRuleName::Fixed, "fixed", "rank", RankNeeds::Shape, fixed_rank},
    // r = max(1, floor(m*n/(m+n)/ratio))
    RankRuleKind{
        RankRuleName::Ratio, "ratio", "ratio", RankNeeds::Shape, ratio_rank,
        /*limit=*/nullptr, /*rounds_down=*/true},
    // ranks that minimize the sum over layers of the relative squared error
    // under a parameter budget of the whole model (rank_budget.h)
    RankRuleKind{RankRuleName::Budget, "budget", "ratio", RankNeeds::All, nullptr, "floor"},
};

}  // namespace

std::span<const RankRuleKind> rank_rules() {
  return kRankRules;
}

const RankRuleKind& kind_of(const RankRule& rule) {
  return *std::ranges::find(kRankRules, rule.rule, &RankRuleKind::rule);  // every rule has a row
}

RankRule even_rule(const RankRule& budget, double factored, double other) {
  RankRule rule = budget;
  rule.rule = RankRuleName::Ratio;
  const double left = (factored + other) / budget.ratio - other;
  rule.ratio = left > 0 ? factored / left : factored;
  return rule;
}

std::int64_t expected_rank(const RankRule& rule, std::int64_t m, std::int64_t n) {
  const RankRuleKind& kind = kind_of(rule);
  return kind.needs == RankNeeds::Shape ? kind.rank(rule, {"", m, n, {}}) : n;
}

std::int64_t largest_grid(
    std::int64_t most, std::int64_t outputs, std::int64_t inputs, std::int64_t expected_rank) {
  std::int64_t grid = std::min(most, expected_rank);
  while (grid > 1 && (outputs % grid != 0 || inputs % grid != 0)) {
    --grid;
  }
  return std::max<std::int64_t>(1, grid);
}

std::string rank_text(std::int64_t rank, std::int64_t grid) {
  return grid == 1 ? std::to_string(rank) : formatted("{} x {}", grid, rank / grid);
}

RankChoice choose_rank(const RankRule& rule, const Spectrum& spectrum) {
  check(spectrum);
  const RankRuleKind& kind = kind_of(rule);
  ABT_ASSERT(kind.rank != nullptr, "{} needs all layers together", kind.name);
  auto rank = std::max<std::int64_t>(1, kind.rank(rule, spectrum));
  const std::int64_t multiple = std::lcm(rule.multiple.value_or(1), spectrum.grid);
  if (const std::int64_t beyond = rank % multiple; beyond > 0) {
    rank += kind.rounds_down && rank > multiple ? -beyond : multiple - beyond;
  }
  if (rule.always) {
    rank = std::min(rank, spectrum.n / spectrum.grid * spectrum.grid);
  } else if (rank > largest_saving_rank(spectrum)) {
    return {0, 1};
  }
  return {rank, 1 - lost_energy(spectrum)[rank / spectrum.grid]};
}

std::vector<RankChoice> choose_ranks(
    const RankRule& rule, const std::vector<Spectrum>& spectra, std::int64_t other_parameters) {
  if (is_global(rule)) {
    return budget_ranks(rule, spectra, other_parameters);
  }
  return mapped(spectra, [&](const Spectrum& spectrum) { return choose_rank(rule, spectrum); });
}

}  // namespace abtrain::linalg
