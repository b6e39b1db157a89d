// The sizes that a model may have where only the spectra, which are not known before training,
// tell the ranks of its factors (linalg::RankNeeds::Values).
#pragma once

#include <vector>

#include "config/planned_sizes.h"

namespace abtrain::plan {

// One element if the sizes are known. Otherwise their ends: each layer at the least rank that the
// rule can give it, at the largest rank with which it is factored, and dense where the rule may
// leave it so. A figure that grows with what each layer stores, as bytes do, lies between those of
// the ends, whatever the ranks are at each decomposition. Throws Error(Config).
std::vector<config::PlannedSizes> possible_sizes(
    const config::RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::plan
