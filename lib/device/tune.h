// LibTorch's process-wide settings for training.
#pragma once

#include <c10/core/Device.h>

namespace abtrain::device {

// Makes cuDNN try its algorithms on each new convolution shape and keep the
// fastest, as a training run has only a few shapes. The use of TF32 stays at
// PyTorch's default. Call it before any thread starts. Does nothing for the
// CPU.
void tune(c10::Device device);

}  // namespace abtrain::device
