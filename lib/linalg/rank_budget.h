// Ranks for all layers under one parameter budget.
#pragma once

#include <cstdint>
#include <vector>

#include "linalg/rank_rule.h"

namespace abtrain::linalg {

// Chooses ranks, multiples of rule.multiple, that minimize the sum over layers of the relative
// squared error, subject to (sum of m*n + other) / (stored parameters + other) >= rule.ratio.
// `other_parameters` (other) counts the parameters that are never factored. No layer's rank is
// below rule.floor (0 .. 1) times the rank that an even compression of all factored layers would
// give it. Throws Error(Config) when even the least rank everywhere does not reach the ratio.
std::vector<RankChoice> budget_ranks(
    const RankRule& rule, const std::vector<Spectrum>& spectra, std::int64_t other_parameters);

}  // namespace abtrain::linalg
