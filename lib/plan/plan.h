// Predicts the traffic, the sizes and, on request, the time of a run, without reading the data.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/planned_sizes.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "nn/model.h"
#include "plan/bounds.h"
#include "plan/time.h"

namespace abtrain::plan {

struct TimeRequest {
  Network network;
  int workers_here = 0;                // that the measurement runs at once; 0: as many as on a node
  std::optional<ComputeTime> compute;  // nullopt: it is measured
};
// Plans the time of a run of this length, from request.compute or, without it,
// from a measurement (plan/compute_time.h), which trains for a few steps.
TimePlan time_of(
    const config::RunOptions& options, const data::DatasetShape& shape,
    const methods::ModelSizes& sizes, const RunLength& length, const TimeRequest& request);

// Returns the plan as text: data, groups, layers with sizes and ranks, bytes per step and per
// synchronization, memory and, on request, the time. The data set need not be there
// (plan/planned_data.h). Throws Error(Config).
std::string plan_text(
    const config::RunOptions& options, const std::optional<TimeRequest>& request = {});
// The same for programs: counts, bytes and seconds, as docs/plan.md lists them.
nlohmann::ordered_json plan_json(
    const config::RunOptions& options, const std::optional<TimeRequest>& request = {});

// The figures of a plan that serve to compare methods.
struct Outline {
  std::int64_t steps = 0;
  Bounds bytes = {};       // sent by a worker in the whole run, mean over the workers
  Bounds stored = {};      // parameters of the final model
  bool estimated = false;  // `bytes` and `stored` follow from a budget (config::PlannedSizes)
  double memory = 0;       // bytes per worker for parameters, gradients and moments in a dense step
  std::vector<std::string> warnings = {};  // as in the plan
  // Seconds of the whole run, on request:
  std::optional<Bounds> train = {};          // communicating, computing and decomposing
  std::optional<Bounds> communication = {};  // part of `train`
};
// Throws Error(Config), as all functions above do, if the configuration cannot run.
Outline outline_of(
    const config::RunOptions& options, const std::optional<TimeRequest>& request = {});

}  // namespace abtrain::plan
