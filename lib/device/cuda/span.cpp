#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include "base/clock.h"
#include "device/span.h"

namespace abtrain::device {

struct Span::Impl {
  c10::Device device;
  Stopwatch watch{};
  double seconds = 0;  // for the CPU
  // For a GPU.
  c10::cuda::CUDAEvent first = {cudaEventDefault};
  c10::cuda::CUDAEvent second = {cudaEventDefault};
};

Span::Span(c10::Device device) : impl_(std::make_shared<Impl>(Impl{device})) {
  if (device.is_cuda()) {
    impl_->first.record(c10::cuda::getCurrentCUDAStream(device.index()));
  }
}

void Span::end() {
  if (impl_->device.is_cuda()) {
    impl_->second.record(c10::cuda::getCurrentCUDAStream(impl_->device.index()));
  } else {
    impl_->seconds = impl_->watch.seconds();
  }
}

std::optional<double> Span::seconds(bool wait) const {
  if (!impl_->device.is_cuda()) {
    return impl_->seconds;
  }
  if (wait) {
    impl_->second.synchronize();
  }
  if (!impl_->second.query()) {
    return std::nullopt;
  }
  return impl_->first.elapsed_time(impl_->second) * 1e-3;  // from milliseconds
}

}  // namespace abtrain::device
