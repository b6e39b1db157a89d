#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/side_stream.h"
#include "device/stream.h"

namespace abtrain::device {

struct SideStream::Impl {
  c10::Device device;
  c10::cuda::CUDAStream stream;
};

SideStream::SideStream(c10::Device device) {
  if (device.is_cuda()) {
    impl_ =
        std::make_unique<Impl>(Impl{device, c10::cuda::getStreamFromPool(false, device.index())});
  }
}
SideStream::~SideStream() = default;

void SideStream::run(const std::function<void()>& body) {
  if (!impl_) {
    body();
    return;
  }
  // Makes the caller's stream wait for this one, however the function exits.
  struct Scope {
    Event done;
    ~Scope() {
      try {
        done.order_after();
      } catch (...) {
        // The device has failed; the next call on it will report that.
      }
    }
  } scope;
  const Event before = Event::record(impl_->device);
  const c10::cuda::CUDAStreamGuard guard(impl_->stream);
  before.order_after();
  struct Mark {
    Event& done;
    c10::Device device;
    ~Mark() {
      try {
        done = Event::record(device);
      } catch (...) {
      }
    }
  } const mark{scope.done, impl_->device};
  body();
}

void keep_for_current_stream(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_cuda()) {
    tensor.record_stream(c10::cuda::getCurrentCUDAStream(tensor.device().index()));
  }
}

}  // namespace abtrain::device
