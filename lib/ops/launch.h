// Queues a kernel on the current stream of a GPU. Most ops do so through
// dispatch() of team_host.h.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

namespace abtrain::ops {

// Set by tests that emulate kernels on the host: the kernels then work on tensors of the CPU.
inline thread_local bool emulates_kernels = false;

// Whether ops on this device run as kernels.
inline bool takes_kernels(c10::Device device) {
  return device.is_cuda() || emulates_kernels;
}

// Calls kernel(stream), which queues work on the stream and returns a CUDA
// status. Throws std::runtime_error naming the op if the status is not 0, and
// always in a build made with ABTRAIN_CUDA=OFF.
void launch_on_gpu(const char* op, c10::Device device, c10::function_ref<int(void* stream)> kernel);

// Like launch_on_gpu(), but if emulates_kernels is set, runs the kernel on the host.
void launch(const char* op, c10::Device device, c10::function_ref<int(void* stream)> kernel);

}  // namespace abtrain::ops
