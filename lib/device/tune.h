// LibTorch's settings of the whole process for training.
#pragma once

#include <c10/core/Device.h>

namespace abtrain::device {

// On a GPU cuDNN tries its algorithms when it meets a convolution of a new
// shape and keeps the fastest; the shapes of a training are few. Which numbers
// are TF32 stays as PyTorch has it. Call it before there are threads; does
// nothing for a CPU.
void tune(c10::Device device);

}  // namespace abtrain::device
