// The two forms of each op of sign_codes.h; jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/sign_codes.h"

namespace abtrain::ops {

void encode_signs_cpu(const kernels::EncodeSigns& job);
void serve_signs_cpu(const kernels::ServeSigns& job);
void decode_signs_cpu(const kernels::DecodeSigns& job);

void encode_signs_cuda(const kernels::EncodeSigns& job, c10::Device device);
void serve_signs_cuda(const kernels::ServeSigns& job, c10::Device device);
void decode_signs_cuda(const kernels::DecodeSigns& job, c10::Device device);

}  // namespace abtrain::ops
