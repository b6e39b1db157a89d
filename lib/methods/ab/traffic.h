// Predicts the bytes that AB-training sends, by the formulas of docs/methods.md.
#pragma once

#include "methods/method_options.h"
#include "methods/traffic_plan.h"

namespace abtrain::methods {

// MethodKind::traffic of `ab`.
TrafficPlan ab_traffic(
    const MethodSetup& setup, const RunLength& run, const ModelSizes& sizes, int rank,
    const StepTraffic& beside);

}  // namespace abtrain::methods
