// The sizes that a model may have if the ranks of its factors depend on singular values (spectra),
// which are not known before training (linalg::RankNeeds::Values).
#pragma once

#include <vector>

#include "config/planned_sizes.h"

namespace abtrain::plan {

// One element if the sizes are known. Otherwise up to three extremes:
//   each layer at the smallest rank that the rule can give it;
//   each layer at the largest rank with which it is factored;
//   the second again, but with every layer dense that the rule may leave dense.
// A figure that grows with what each layer stores, such as bytes, lies between its values at the
// extremes, whatever the ranks are at each decomposition. Throws Error(Config).
std::vector<config::PlannedSizes> possible_sizes(
    const config::RunOptions& options, const data::ExampleShape& shape);

}  // namespace abtrain::plan
