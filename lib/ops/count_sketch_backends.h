// The two forms of count_sketch(); jobs are checked.
#pragma once

#include <c10/core/Device.h>

#include "kernels/count_sketch.h"

namespace abtrain::ops {

void count_sketch_cpu(const kernels::CountSketch& job);
void count_sketch_cuda(const kernels::CountSketch& job, c10::Device device);

}  // namespace abtrain::ops
