// The two forms of adagrad_step(); jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/adagrad.h"

namespace abtrain::ops {

void adagrad_step_cpu(const kernels::AdagradStep& job);
void adagrad_step_cuda(const kernels::AdagradStep& job, c10::Device device);

}  // namespace abtrain::ops
