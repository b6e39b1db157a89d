#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include "device/span.h"

namespace abtrain::device {

struct Span::Gpu {
  c10::cuda::CUDAEvent first = {cudaEventDefault};
  c10::cuda::CUDAEvent second = {cudaEventDefault};
};

Span::Span(c10::Device device) {
  if (device.is_cuda()) {
    gpu_ = std::make_shared<Gpu>();
    gpu_->first.record(c10::cuda::getCurrentCUDAStream(device.index()));
  }
}

void Span::end() {
  if (gpu_) {
    gpu_->second.record(c10::cuda::getCurrentCUDAStream(gpu_->first.device_index()));
  } else {
    seconds_ = watch_.seconds();
  }
}

std::optional<double> Span::seconds(bool wait) const {
  if (!gpu_) {
    return seconds_;
  }
  if (wait) {
    gpu_->second.synchronize();
  }
  if (!gpu_->second.query()) {
    return std::nullopt;
  }
  return gpu_->first.elapsed_time(gpu_->second) * 1e-3;  // from milliseconds
}

}  // namespace abtrain::device
