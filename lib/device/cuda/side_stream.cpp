#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "device/side_stream.h"

namespace abtrain::device {

namespace {

// What is queued on `later` from now on starts after what `earlier` has now.
void order(const c10::cuda::CUDAStream& earlier, const c10::cuda::CUDAStream& later) {
  c10::cuda::CUDAEvent point;
  point.record(earlier);
  point.block(later);
}

}  // namespace

struct SideStream::Impl {
  c10::cuda::CUDAStream stream;
};

SideStream::SideStream(c10::Device device) {
  if (device.is_cuda()) {
    impl_ = std::make_shared<Impl>(Impl{c10::cuda::getStreamFromPool(false, device.index())});
  }
}

void SideStream::run(const std::function<void()>& body) {
  if (!impl_) {
    body();
    return;
  }
  // Makes the caller's stream wait for this one, however the function exits.
  struct Join {
    c10::cuda::CUDAStream own;
    c10::cuda::CUDAStream callers;
    ~Join() {
      try {
        order(own, callers);
      } catch (...) {
        // The device has failed; the next call on it will report that.
      }
    }
  } const join{impl_->stream, c10::cuda::getCurrentCUDAStream(impl_->stream.device_index())};
  order(join.callers, join.own);
  const c10::cuda::CUDAStreamGuard guard(join.own);
  body();
}

void keep_for_current_stream(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_cuda()) {
    tensor.record_stream(c10::cuda::getCurrentCUDAStream(tensor.device().index()));
  }
}

}  // namespace abtrain::device
