// The forms of difference_codes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/difference_codes.h"

namespace abtrain::ops {

void encode_difference_cpu(const kernels::EncodeDifference& job);
void decode_differences_cpu(const kernels::DecodeDifferences& job);

}  // namespace abtrain::ops
