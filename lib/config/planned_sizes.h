// What of a configuration's model decides its traffic and time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "config/run_options.h"
#include "methods/traffic_plan.h"
#include "nn/model.h"

namespace abtrain::config {

// Layers with their ranks. `estimated`: the rule is `budget`, and every layer
// is shown at the same ratio, since only the spectra tell how it will share.
struct PlannedSizes {
  methods::ModelSizes sizes;
  bool estimated = false;
};
// Nothing where only the spectra tell (sigma, energy) and no `ranks` are given,
// of layers by their names. Throws Error(Config).
std::optional<PlannedSizes> model_sizes(
    const RunOptions& options,
    const nn::InputShape& shape,
    const std::map<std::string, std::int64_t>* ranks = nullptr);

}  // namespace abtrain::config
