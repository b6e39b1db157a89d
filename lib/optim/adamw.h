// The step of AdamW, for optimizers that apply it to some of the parameters.
#pragma once

#include "optim/optimizer.h"

namespace abtrain::optim {

// One step of AdamW (Loshchilov and Hutter, arXiv 1711.05101) on the parameters of a slice, which
// must not be empty. `rate`: the learning rate, a scalar tensor of Rates. The slice's moments 0 and
// 1 are the running means of the gradients and of their squares. `divisor`: as in
// Optimizer::step().
void adamw_step(
    const Slice& slice, const at::Tensor& rate, const OptimizerOptions& options,
    const at::Tensor& divisor);

}  // namespace abtrain::optim
