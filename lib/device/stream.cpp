#include "device/stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "device/side_stream.h"

namespace abtrain::device {

namespace {

using Backend = c10::impl::VirtualGuardImpl;

// Makes work queued on `later` from now on start after the work now queued on `earlier`.
void order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event point(earlier.device_type());
  point.record(earlier);
  point.block(later);
}

}  // namespace

c10::Stream current_stream(c10::Device device) {
  return Backend(device.type()).getStream(device);
}

void synchronize(c10::Device device) {
  if (device.is_cuda()) {
    current_stream(device).synchronize();
  }
}

Event Event::record(c10::Device device) {
  Event result;
  if (device.is_cuda()) {
    result.event_.emplace(device.type());
    result.event_->record(current_stream(device));
  }
  return result;
}

void Event::order_after() const {
  if (event_) {
    event_->block(current_stream(event_->device()));
  }
}

void Event::wait() const {
  if (event_) {
    event_->synchronize();
  }
}

bool Event::is_reached() const {
  return !event_ || event_->query();
}

SideStream::SideStream(c10::Device device) {
  if (device.is_cuda()) {
    stream_ = Backend(device.type()).getStreamFromGlobalPool(device);
  }
}

Event SideStream::start(const std::function<void()>& body) {
  if (!stream_) {
    body();
    return {};
  }
  order(current_stream(stream_->device()), *stream_);
  const c10::StreamGuard guard(*stream_);
  body();
  return Event::record(stream_->device());
}

void SideStream::run(const std::function<void()>& body) {
  // Makes the caller's stream wait for the second one, even if `body` throws.
  struct Join {
    const std::optional<c10::Stream>& own;
    ~Join() {
      try {
        if (own) {
          order(*own, current_stream(own->device()));
        }
      } catch (...) {
        // The device has failed; the next call on it will report that.
      }
    }
  } const join{stream_};
  start(body);
}

void keep_for_current_stream(const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_cuda()) {
    tensor.record_stream(current_stream(tensor.device()));
  }
}

}  // namespace abtrain::device
