// The sizes that a model may have where only the spectra, which are not known before training,
// tell the ranks of its factors (linalg::RankNeeds::Values).
#pragma once

#include <vector>

#include "config/planned_sizes.h"
#include "config/run_length.h"

namespace abtrain::plan {

// One element if the sizes are known. Otherwise their ends: each layer at the least rank that the
// rule can give it, at the largest rank with which it is factored, and dense where the rule may
// leave it so; then the mixtures of these that send the least and the most, where they are others.
// A figure that is a sum over the layers, as bytes are, lies between those of the ends, whatever
// the rank of each layer is at each decomposition. Throws Error(Config).
std::vector<config::PlannedSizes> possible_sizes(
    const config::RunOptions& options, const data::ExampleShape& shape, const RunLength& length);

}  // namespace abtrain::plan
