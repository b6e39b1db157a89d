// The host forms that have one per instruction set.
#pragma once

#include "kernels/codes/level_codes.h"
#include "ops/cpu/simd.h"

namespace abtrain::kernels {

void work_on_host(const EncodeAbove& job, ops::Simd simd);
void work_on_host(const AverageLevels& job, ops::Simd simd);

}  // namespace abtrain::kernels
