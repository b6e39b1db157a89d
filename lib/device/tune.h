// LibTorch's process-wide settings for training.
#pragma once

#include <c10/core/Device.h>

namespace abtrain::device {

// Call it before any thread starts. Does nothing for the CPU. If `shapes_stay` (layer shapes do not
// change during the run), cuDNN tries its algorithms on each convolution and keeps the fastest,
// which saves 3 to 8 % of a step. Otherwise every worker would search again whenever weights are
// factored, which costs more than it saves. TF32 stays at PyTorch's default.
void tune(c10::Device device, bool shapes_stay);

}  // namespace abtrain::device
