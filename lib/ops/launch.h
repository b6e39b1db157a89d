// Queues a kernel on the current stream of a GPU. Most ops do so through
// dispatch() of team_host.h.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

namespace abtrain::ops {

// Calls kernel(stream), which queues work on the stream and returns a CUDA
// status. Throws std::runtime_error naming the op if the status is not 0, and
// always in a build made with ABTRAIN_CUDA=OFF.
void launch(const char* op, c10::Device device, c10::function_ref<int(void* stream)> kernel);

}  // namespace abtrain::ops
