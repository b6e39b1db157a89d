// LibTorch's process-wide settings for training.
#pragma once

#include <c10/core/Device.h>

namespace abtrain::device {

// Call it before any thread starts. Does nothing for the CPU. If `shapes_stay` in a run, cuDNN
// tries its algorithms on each convolution and keeps the fastest: steps take 4 to 8 % less
// time. Each worker tries for itself, which after every cut of a network's weights into factors
// would cost more than it gains: four workers on one H200 needed 10 s for vgg16-small. The use of
// TF32 stays at PyTorch's default.
void tune(c10::Device device, bool shapes_stay);

}  // namespace abtrain::device
