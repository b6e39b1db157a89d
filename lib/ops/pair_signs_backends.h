// The two forms of pair_signs(); jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/pair_signs.h"

namespace abtrain::ops {

void pair_signs_cpu(const kernels::PairSigns& job);
void pair_signs_cuda(const kernels::PairSigns& job, c10::Device device);

}  // namespace abtrain::ops
