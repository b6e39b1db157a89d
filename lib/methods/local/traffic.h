// The bytes of methods with local steps (docs/methods.md).
#pragma once

#include "methods/method_options.h"
#include "methods/traffic_plan.h"

namespace abtrain::methods {

// MethodKind::traffic of `local-sgd` and `diloco`.
TrafficPlan local_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside);

}  // namespace abtrain::methods
