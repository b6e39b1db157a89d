// The forms of count_sketch.h on the CPU; arguments are checked.
#pragma once

#include "kernels/count_sketch.h"

namespace abtrain::ops {

void count_sketch_cpu(const kernels::CountSketch& job);

}  // namespace abtrain::ops
