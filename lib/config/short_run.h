// Warm-ups of a configuration in a run of fewer steps than it was written for,
// as with `train.steps=20` on the command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::config {

// Shortens the warm-ups in steps that do not fit into train.steps to a tenth of
// the run, and the annealing of the ranks to what the decompositions of the run
// leave. `is_given`: the key must stay as it is. Returns what was done, one
// sentence per key, which begins with it.
std::vector<std::string> fit_warmups(
    RunOptions& options,
    const std::function<bool(const std::string& key)>& is_given);

}  // namespace abtrain::config
