// The records of a run's events file for TensorBoard: the configuration as hyperparameters, and the
// numbers of metrics.jsonl as scalars.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/run_options.h"

namespace abtrain::run_folder {

// The numbers of one event with their tags, such as "evaluate/loss". Numbers
// that are not finite are left out.
std::vector<std::pair<std::string, double>> scalars_of(const nlohmann::ordered_json& event);

// The records that precede the first event's. `start`: start of the run, seconds since 1970.
std::string tensorboard_head(const config::RunOptions& options, std::int64_t start);

// The record of one event, which has "event", "step" and "seconds"; "" if the
// event has nothing to show.
std::string tensorboard_record(const nlohmann::ordered_json& event, std::int64_t start);

}  // namespace abtrain::run_folder
