// The two forms of pair_balance(); jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/pair_balance.h"

namespace abtrain::ops {

void pair_balance_cpu(const kernels::PairBalance& job);
void pair_balance_cuda(const kernels::PairBalance& job, c10::Device device);

}  // namespace abtrain::ops
