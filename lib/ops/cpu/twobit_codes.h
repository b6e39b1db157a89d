// The forms of twobit_codes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/twobit_codes.h"

namespace abtrain::ops {

void encode_threshold_cpu(const kernels::EncodeThreshold& job);
void average_codes_cpu(const kernels::AverageCodes& job);
void pack_sums_cpu(const kernels::PackSums& job);

}  // namespace abtrain::ops
