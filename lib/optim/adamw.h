// The step of AdamW, for optimizers that take it on some of the parameters.
#pragma once

#include "optim/optimizer.h"

namespace abtrain::optim {

// One step of AdamW at `rate` (a scalar, as of Rates) on the parameters of a
// slice, which must not be empty. Their moments 0 and 1 are those of AdamW.
void adamw_step(
    const Slice& slice, const at::Tensor& rate, const OptimizerOptions& options,
    const at::Tensor& divisor);

}  // namespace abtrain::optim
