// What a run shows in TensorBoard: the configuration, and the events of
// metrics.jsonl, as records of an events file.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "config/run_options.h"

namespace abtrain::run_folder {

// The numbers of one event by their tags, "train/loss"; numbers that are not
// finite are left out.
std::vector<std::pair<std::string, double>> scalars_of(
    const nlohmann::ordered_json& event);

// What stands before the first event. `start` of the run: seconds since 1970.
std::string tensorboard_head(
    const config::RunOptions& options,
    std::int64_t start);

// An event, with "event", "step" and "seconds"; "" where it has nothing to
// show.
std::string tensorboard_record(
    const nlohmann::ordered_json& event,
    std::int64_t start);

}  // namespace abtrain::run_folder
