// Where AB-training is hardly worth its while, told by the network alone.
#pragma once

#include <string>
#include <vector>

#include "config/planned_sizes.h"
#include "nn/model.h"

namespace abtrain::plan {

// One sentence each, for a configuration whose method factors weights: most layers get rank 1 at
// most, or the network has depthwise convolutions throughout. `possible`: the sizes that the model
// may have, at least one (possible_sizes.h).
std::vector<std::string> ab_notes(
    const nn::Model& model, const std::vector<config::PlannedSizes>& possible);

}  // namespace abtrain::plan
