// The forms of pair_signs.h on the CPU; arguments are checked.
#pragma once

#include "kernels/pair_signs.h"

namespace abtrain::ops {

void pair_signs_cpu(const kernels::PairSigns& job);

}  // namespace abtrain::ops
