// Rules that choose the rank of each factored layer from its singular values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "linalg/spectrum.h"

namespace abtrain {
class Fields;
}

namespace abtrain::linalg {

enum class RankRuleName { Sigma, Energy, Fixed, Ratio, Budget };

struct RankRule {
  RankRuleName rule = RankRuleName::Sigma;
  double cut = 0.15;
  double keep = 0.9;
  std::int64_t rank = 48;
  double ratio = 10;
  double floor = 0;
  // All ranks are multiples of this; products with other ranks can take up to twice as long.
  // nullopt counts as 1; config/planned_sizes.h replaces it by a multiple that suits the device.
  std::optional<std::int64_t> multiple = {};
  // Not a key. For `energy`: the rank of the layer's first cut, which is the minimum for all later
  // cuts. 0: not cut yet.
  std::int64_t least = 0;
  // Not a key: factor every layer, even if that saves nothing; used for adapters. Only for local
  // rules (see choose_rank()).
  bool always = false;
};

// The information that a rule needs to choose the rank of a layer.
enum class RankNeeds {
  Shape,   // m and n: the rank is known before training
  Values,  // the layer's singular values, from the largest on
  All,     // the singular values of all layers together
};

struct RankRuleKind {
  RankRuleName rule;
  const char* name;  // in configurations
  const char* key;   // the parameter of RankRule that it reads
  RankNeeds needs;
  // The rank of one layer; null if the rule needs all layers.
  std::int64_t (*rank)(const RankRule& rule, const Spectrum& spectrum);
  const char* limit = nullptr;  // the key of a bound that it also reads
  bool rounds_down = false;     // to a multiple, since it promises a size; otherwise up
};

// All rules; rank_rule.cpp holds the table with their formulas. A new rule needs an enumerator, a
// row and a function there, and its parameter in RankRule and fields_of().
std::span<const RankRuleKind> rank_rules();
const RankRuleKind& kind_of(const RankRule& rule);

// Rank 0: the layer stays dense, because factors would save nothing (r >= m*n/(m+n), and not
// rule.always). Any other rank is a multiple of the grid and of rule.multiple (of the grid only, if
// rule.always limits it to n); local rules round to such a multiple, at least one.
struct RankChoice {
  std::int64_t rank = 0;
  double energy = 1;  // kept share of sum s_i^2
};

// True if the rule needs the spectra of all layers together.
inline bool is_global(const RankRule& rule) {
  return kind_of(rule).needs == RankNeeds::All;
}

// Returns the rule that spends a budget evenly: every layer gets the same ratio, so that `factored`
// parameters of factored layers and `other` parameters together become (factored + other) /
// budget.ratio.
RankRule even_rule(const RankRule& budget, double factored, double other);

// Estimates a layer's rank, before rounding, from m and n; returns n if the rule needs singular
// values.
std::int64_t expected_rank(const RankRule& rule, std::int64_t m, std::int64_t n);

// Returns the largest number of blocks per side, up to `most` and to the expected rank, that
// divides both the outputs and the inputs of a layer; at least 1.
std::int64_t largest_grid(
    std::int64_t most, std::int64_t outputs, std::int64_t inputs, std::int64_t expected_rank);

// Returns "12", or "4 x 3" for a grid with 4 blocks per side, each of rank 3.
std::string rank_text(std::int64_t rank, std::int64_t grid);

// Chooses the rank of one layer by a local rule (one that is not global).
RankChoice choose_rank(const RankRule& rule, const Spectrum& spectrum);

// Chooses the ranks of all layers. `other_parameters` counts the parameters that are never
// factored; the rule `budget` keeps (sum of m*n + other) / (stored parameters + other) >=
// rule.ratio. Throws Error(Config) when even the least rank that rule.multiple and rule.floor allow
// in each layer does not reach the ratio.
std::vector<RankChoice> choose_ranks(
    const RankRule& rule, const std::vector<Spectrum>& spectra, std::int64_t other_parameters);

// The table of a rule's keys, ranges and help (base/options.h).
Fields fields_of(RankRule& rule);

}  // namespace abtrain::linalg
