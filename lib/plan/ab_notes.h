// Notes on neural networks for which AB-training (of low-rank factors A and B, by separate groups
// of workers) is hardly worthwhile, judged from the network alone.
#pragma once

#include <string>
#include <vector>

#include "config/planned_sizes.h"
#include "nn/model.h"

namespace abtrain::plan {

// For configurations that factor weights: returns a sentence if most factored layers can only get
// rank 1, and one if many layers are depthwise convolutions. `possible`: the sizes that the model
// may have, at least one (possible_sizes.h).
std::vector<std::string> ab_notes(
    const nn::Model& model, const std::vector<config::PlannedSizes>& possible);

}  // namespace abtrain::plan
