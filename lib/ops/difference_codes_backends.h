// The two forms of difference codes; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/difference_codes.h"

namespace abtrain::ops {

void encode_difference_cpu(const kernels::EncodeDifference& job);
void encode_difference_cuda(
    const kernels::EncodeDifference& job,
    c10::Device device);
void decode_differences_cpu(const kernels::DecodeDifferences& job);
void decode_differences_cuda(
    const kernels::DecodeDifferences& job,
    c10::Device device);

}  // namespace abtrain::ops
