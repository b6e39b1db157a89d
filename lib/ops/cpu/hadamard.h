// The transform of hadamard.h on the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "ops/cpu/simd.h"

namespace abtrain::ops {

void hadamard_cpu(const at::Tensor& x, int log_size);

// One block of 2^log_size elements.
void hadamard_block(float* x, int log_size, Simd simd);

}  // namespace abtrain::ops
