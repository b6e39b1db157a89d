#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <array>

#include "base/clock.h"
#include "device/cuda/check.h"
#include "device/span.h"

namespace abtrain::device {

struct Span::Impl {
  c10::Device device;
  Stopwatch watch;
  double seconds = 0;                      // for the CPU
  std::array<cudaEvent_t, 2> events = {};  // for a GPU

  explicit Impl(c10::Device where) : device(where) {
    if (device.is_cuda()) {
      const c10::cuda::CUDAGuard guard(device);
      for (cudaEvent_t& event : events) {
        ABT_CUDA_CHECK(cudaEventCreate(&event));
      }
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (cudaEvent_t event : events) {
      if (event != nullptr) {
        ABT_CUDA_WARN(cudaEventDestroy(event));
      }
    }
  }
  void record(std::size_t which) {
    const c10::cuda::CUDAGuard guard(device);
    ABT_CUDA_CHECK(
        cudaEventRecord(events[which], c10::cuda::getCurrentCUDAStream(device.index()).stream()));
  }
};

Span::Span(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Span::Span(Span&&) noexcept = default;
Span& Span::operator=(Span&&) noexcept = default;
Span::~Span() = default;

Span Span::begin(c10::Device device) {
  auto impl = std::make_unique<Impl>(device);
  if (device.is_cuda()) {
    impl->record(0);
  }
  return Span(std::move(impl));
}

void Span::end() {
  if (impl_->device.is_cuda()) {
    impl_->record(1);
  } else {
    impl_->seconds = impl_->watch.seconds();
  }
}

std::optional<double> Span::seconds(bool wait) const {
  if (!impl_->device.is_cuda()) {
    return impl_->seconds;
  }
  if (wait) {
    ABT_CUDA_CHECK(cudaEventSynchronize(impl_->events[1]));
  } else {
    const cudaError_t status = cudaEventQuery(impl_->events[1]);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // clears it: this is no error
      return std::nullopt;
    }
    ABT_CUDA_CHECK(status);
  }
  float milliseconds = 0;
  ABT_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, impl_->events[0], impl_->events[1]));
  return milliseconds * 1e-3;
}

}  // namespace abtrain::device
