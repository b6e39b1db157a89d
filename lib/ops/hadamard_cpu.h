// The transform of hadamard.h on the CPU.
#pragma once

#include <cstdint>

#include "ops/simd_cpu.h"

namespace abtrain::ops {

// One block of 2^log_size numbers.
void hadamard_block(float* x, int log_size, Simd simd);

}  // namespace abtrain::ops
