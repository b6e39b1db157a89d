// Fits a configuration to a run of fewer steps than it was written for: with `train.steps=20` on
// the command line or in a sweep, and for measurements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::config {

// Shortens warm-ups in steps or epochs to a tenth of the run if they do not fit into train.steps.
// Shortens the annealing of the ranks so that it ends by the run's last decomposition. The steps
// per epoch come from the data set, which is read only if a length is in epochs; if the data set is
// missing, warm-ups in epochs stay. `is_given`: whether a key must stay as it is. Returns one
// sentence per changed key, which begins with the key.
std::vector<std::string> fit_warmups(
    RunOptions& options, const std::function<bool(const std::string& key)>& is_given);

// The configuration reduced to its training steps, to measure their time: equal batches in the
// default order, without evaluations and checkpoints.
RunOptions steps_alone(const RunOptions& configured, int workers);

}  // namespace abtrain::config
