// Ends a run whose numbers have left the finite.
#pragma once

#include <optional>

#include "optim/parameter_block.h"
#include "train/readback.h"

namespace abtrain::train {

// Throws Error(Diverged) where the reading (if there is one) is not finite. It
// names the step, the worker and the first parameter that is not finite.
void check_finite(
    const char* what,
    const std::optional<Readback::Reading>& reading,
    int worker,
    const optim::ParameterBlock& block);

// The same of the block's parameters after `step` steps. Waits for the device.
void check_parameters(
    std::int64_t step,
    int worker,
    optim::ParameterBlock& block);

}  // namespace abtrain::train
