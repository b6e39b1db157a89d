// The traffic that a configuration will cause, as `plan` prints it.
#pragma once

#include <string>

#include "config/run_length.h"
#include "config/run_options.h"
#include "methods/traffic_plan.h"

namespace abtrain::plan {

// What `order: cd-grab` sends (methods/traffic_plan.h); empty for other orders.
methods::StepTraffic order_traffic(
    const config::RunOptions& options,
    const RunLength& length);

// In the whole run by a worker, mean over the workers.
double planned_bytes(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length);

// Bytes sent a worker, mean over the workers: of each kind of step, of a
// synchronisation, of the whole run.
std::string traffic_text(
    const config::RunOptions& options,
    const methods::ModelSizes& sizes,
    const RunLength& length);

}  // namespace abtrain::plan
