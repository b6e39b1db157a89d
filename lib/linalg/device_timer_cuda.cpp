#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "device/cuda_check.h"
#include "linalg/exact_drivers.h"

namespace abtrain::linalg {
namespace {

struct TimedEvent {
  cudaEvent_t event = nullptr;
  TimedEvent() {
    ABT_CUDA_CHECK(cudaEventCreate(&event));
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() {
    ABT_CUDA_WARN(cudaEventDestroy(event));
  }
};

}  // namespace

double time_on_device(const std::function<void()>& body, c10::Device device) {
  const c10::cuda::CUDAGuard guard(device);
  const TimedEvent begin;
  const TimedEvent end;
  const auto stream = c10::cuda::getCurrentCUDAStream(device.index()).stream();
  ABT_CUDA_CHECK(cudaEventRecord(begin.event, stream));
  body();
  ABT_CUDA_CHECK(cudaEventRecord(end.event, stream));
  ABT_CUDA_CHECK(cudaEventSynchronize(end.event));
  float milliseconds = 0;
  ABT_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.event, end.event));
  return milliseconds;
}

}  // namespace abtrain::linalg
