// The two forms of each op of threshold_codes.h; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/threshold_codes.h"

namespace abtrain::ops {

void moments_cpu(const kernels::Moments& job);
void encode_threshold_cpu(const kernels::EncodeThreshold& job);
void average_codes_cpu(const kernels::AverageCodes& job);
void pack_sums_cpu(const kernels::PackSums& job);
void unpack_sums_cpu(const kernels::UnpackSums& job);

void moments_cuda(const kernels::Moments& job, c10::Device device);
void encode_threshold_cuda(
    const kernels::EncodeThreshold& job,
    c10::Device device);
void average_codes_cuda(const kernels::AverageCodes& job, c10::Device device);
void pack_sums_cuda(const kernels::PackSums& job, c10::Device device);
void unpack_sums_cuda(const kernels::UnpackSums& job, c10::Device device);

}  // namespace abtrain::ops
