// The forms of adagrad.h on the CPU; arguments are checked.
#pragma once

#include "kernels/adagrad.h"

namespace abtrain::ops {

void adagrad_step_cpu(const kernels::AdagradStep& job);

}  // namespace abtrain::ops
