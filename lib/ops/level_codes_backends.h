// The two forms of each op of level_codes.h; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/level_codes.h"
#include "ops/simd_cpu.h"

namespace abtrain::ops {

void sizes_cpu(const kernels::Sizes& job);
void encode_above_cpu(const kernels::EncodeAbove& job, Simd simd);
void encode_by_chance_cpu(const kernels::EncodeByChance& job);
void subtract_levels_cpu(const kernels::SubtractLevels& job);
void average_levels_cpu(const kernels::AverageLevels& job, Simd simd);
void average_byte_levels_cpu(const kernels::AverageByteLevels& job);

void sizes_cuda(const kernels::Sizes& job, c10::Device device);
void encode_above_cuda(const kernels::EncodeAbove& job, c10::Device device);
void encode_by_chance_cuda(
    const kernels::EncodeByChance& job, c10::Device device);
void subtract_levels_cuda(
    const kernels::SubtractLevels& job, c10::Device device);
void average_levels_cuda(const kernels::AverageLevels& job, c10::Device device);
void average_byte_levels_cuda(
    const kernels::AverageByteLevels& job, c10::Device device);

}  // namespace abtrain::ops
