// What a configuration will do, before anything is trained or read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nn/model.h"
#include "run/planned_sizes.h"
#include "run/run_length.h"
#include "run/run_options.h"
#include "run/time_plan.h"

namespace abtrain::run {

// What is asked about time (run/time_plan.h).
struct TimeRequest {
  Network network;
  int workers_here = 0;  // at once while measuring; 0: those of a node
  std::optional<ComputeTime> compute;  // else it is measured
};
ComputeTime compute_time(
    const RunOptions& options,
    const data::DatasetShape& shape,
    const methods::ModelSizes& sizes,
    const TimeRequest& request);

// Everything that can be wrong with a configuration on data of this shape,
// found without reading it or touching a file. Throws Error(Config).
RunLength check_run(
    const RunOptions& options,
    const nn::InputShape& shape,
    std::int64_t train_images);

// Throws Error(Config) where the workers' parameters, gradients and moments
// alone, and the bytes of the images that lie there, are more than the memory
// of the device.
void check_memory(
    const RunOptions& options,
    const nn::InputShape& shape,
    int local_workers,
    std::int64_t image_bytes);

// The resolved configuration, then groups, layers with sizes and ranks, bytes
// a step and a synchronisation, memory, and the time where it is asked for, as
// text. Throws Error(Config).
std::string plan_text(
    const RunOptions& options,
    const std::optional<TimeRequest>& request = {});

}  // namespace abtrain::run
