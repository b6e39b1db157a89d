// The traffic that a configuration will cause, as `abtrain plan` prints it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "methods/traffic_plan.h"

namespace abtrain::plan {

// The traffic that the choice of the example order causes; empty if that sends nothing. The result
// keeps a reference to `options`.
methods::StepTraffic order_traffic(const config::RunOptions& options, const RunLength& length);

// The traffic of each worker, in rank order.
std::vector<methods::TrafficPlan> traffic_of_workers(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length);

// Bytes that a worker sends in the whole run, mean over the workers.
double planned_bytes(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length);

// Bytes sent per worker, mean over the workers, as numbers: for each kind of step, for a
// synchronization, and for the whole run: {"dense_step", ..., "whole_run", "vs_fp32"}. "vs_fp32" is
// relative to fp32 data parallel training; null with one worker.
nlohmann::ordered_json traffic_json(
    const config::RunOptions& options, const methods::ModelSizes& sizes, const RunLength& length);
// The same as text, with the bounds of each figure. `possible`: the sizes that the model may have
// (possible_sizes.h).
std::string traffic_text(
    const config::RunOptions& options, const std::vector<config::PlannedSizes>& possible,
    const RunLength& length);

}  // namespace abtrain::plan
