// The forms of level_codes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/level_codes.h"
#include "ops/cpu/simd.h"

namespace abtrain::ops {

void encode_above_cpu(const kernels::EncodeAbove& job, Simd simd);
void encode_by_chance_cpu(const kernels::EncodeByChance& job);
void subtract_levels_cpu(const kernels::SubtractLevels& job);
void average_levels_cpu(const kernels::AverageLevels& job, Simd simd);
void average_byte_levels_cpu(const kernels::AverageByteLevels& job);

}  // namespace abtrain::ops
