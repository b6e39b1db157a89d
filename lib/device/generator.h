// Random number generators for LibTorch's own kernels.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace abtrain::device {

// Creates a generator for one worker, separate from LibTorch's default
// generators, on the CPU or a CUDA device. Seed it before use.
at::Generator make_generator(c10::Device device);

}  // namespace abtrain::device
