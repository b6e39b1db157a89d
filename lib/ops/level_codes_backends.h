// The two forms of each op of level_codes.h; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/level_codes.h"

namespace abtrain::ops {

void survivors_cpu(const kernels::Survivors& job);
void largest_cpu(const kernels::Largest& job);
void encode_levels_cpu(const kernels::EncodeLevels& job);
void average_levels_cpu(const kernels::AverageLevels& job);
void average_byte_levels_cpu(const kernels::AverageByteLevels& job);

void survivors_cuda(const kernels::Survivors& job, c10::Device device);
void largest_cuda(const kernels::Largest& job, c10::Device device);
void encode_levels_cuda(const kernels::EncodeLevels& job, c10::Device device);
void average_levels_cuda(const kernels::AverageLevels& job, c10::Device device);
void average_byte_levels_cuda(
    const kernels::AverageByteLevels& job, c10::Device device);

}  // namespace abtrain::ops
