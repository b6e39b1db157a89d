// The form of magnitudes.h on the CPU; arguments are checked.
#pragma once

#include "kernels/magnitudes.h"

namespace abtrain::ops {

void magnitudes_cpu(const kernels::Magnitudes& job);

}  // namespace abtrain::ops
