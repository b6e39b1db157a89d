// Ends a run with an error if its loss, gradients or weights are no longer finite.
#pragma once

#include <optional>

#include "nn/model.h"
#include "optim/parameter_block.h"
#include "train/readback.h"

namespace abtrain::train {

// Throws StepError(Diverged) if the reading (if any) is not finite. The error names
// the step, the worker and the first parameter that is not finite. `what`: the
// name of the number, such as "loss".
void check_finite(
    const char* what, const std::optional<Readback::Reading>& reading, int worker,
    const optim::ParameterBlock& block);

// Throws StepError(Diverged), naming step, worker and parameter, if a parameter of the block is not
// finite after `step` steps. Waits for the device.
void check_parameters(std::int64_t step, int worker, optim::ParameterBlock& block);

// As check_parameters(), for the model's running statistics.
void check_buffers(std::int64_t step, int worker, const nn::Model& model);

}  // namespace abtrain::train
