// The forms of sign_codes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/sign_codes.h"

namespace abtrain::ops {

void encode_signs_cpu(const kernels::EncodeSigns& job);
void serve_signs_cpu(const kernels::ServeSigns& job);
void decode_signs_cpu(const kernels::DecodeSigns& job);

}  // namespace abtrain::ops
