// What a configuration will do, before anything is trained or read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "nn/model.h"
#include "plan/time.h"

namespace abtrain::plan {

// What is asked about time (plan/time.h).
struct TimeRequest {
  Network network;
  int workers_here = 0;  // at once while measuring; 0: those of a node
  std::optional<ComputeTime> compute;  // else it is measured
};
ComputeTime compute_time(
    const config::RunOptions& options,
    const data::DatasetShape& shape,
    const methods::ModelSizes& sizes,
    const TimeRequest& request);

// The resolved configuration, then groups, layers with sizes and ranks, bytes
// a step and a synchronisation, memory, and the time where it is asked for, as
// text. Throws Error(Config).
std::string plan_text(
    const config::RunOptions& options,
    const std::optional<TimeRequest>& request = {});

}  // namespace abtrain::plan
