// What a configuration will do, before anything is trained or read.
#pragma once

#include <optional>
#include <string>

#include "methods/traffic_plan.h"
#include "nn/model.h"
#include "run/run_options.h"

namespace abtrain::run {

// Layers with their ranks; nothing where the rank rule needs the spectra
// (sigma, energy, budget).
std::optional<methods::ModelSizes> model_sizes(
    const RunOptions& options, const nn::InputShape& shape);

// The resolved configuration, then groups, layers with sizes and ranks, bytes
// a step and a synchronisation, memory, as text. Throws Error(Config).
std::string plan_text(const RunOptions& options);

}  // namespace abtrain::run
