// Dispatches an op to one of its two forms: a function on the CPU, or a
// launcher of kernels/ on the current stream of a GPU.
//
//   dispatch("row_norms", job, device, row_norms_cpu, kernels::row_norms);
#pragma once

#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

namespace abtrain::ops {

// Calls kernel(stream), which queues work on the stream and returns a CUDA
// status. Throws std::runtime_error naming the op if the status is not 0, and
// always in a build made with ABTRAIN_CUDA=OFF.
void launch(
    const char* op,
    c10::Device device,
    c10::function_ref<int(void* stream)> kernel);

// For an op whose job struct holds all that either form needs.
template <class Job, class OnCpu>
void dispatch(
    const char* op,
    const Job& job,
    c10::Device device,
    const OnCpu& on_cpu,  // on_cpu(job)
    int (*on_gpu)(const Job&, void* stream)) {
  if (device.is_cuda()) {
    launch(op, device, [&](void* stream) { return on_gpu(job, stream); });
  } else {
    on_cpu(job);
  }
}

}  // namespace abtrain::ops
