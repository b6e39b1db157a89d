// A second stream beside a thread's current one, for work that the thread's other work need not
// wait for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <optional>

#include "device/stream.h"

namespace abtrain::device {

// Takes a stream from LibTorch's pool and keeps it, so that memory freed on it is reused there. On
// the CPU everything runs on the calling thread.
class SideStream {
 public:
  explicit SideStream(c10::Device device);

  // Work that `body` queues starts after everything that this thread has queued so far. Work that
  // the thread queues afterwards starts after the body's work, even if `body` throws.
  void run(const std::function<void()>& body);
  // Like run(), but the thread's later work does not wait for the body's work; the returned event
  // marks the end of the body's work.
  Event start(const std::function<void()>& body);

 private:
  std::optional<c10::Stream> stream_;  // none on the CPU
};

// Call it when this thread's current stream uses a tensor that was created on
// another stream: the tensor's memory is not reused until that use is complete.
void keep_for_current_stream(const at::Tensor& tensor);

}  // namespace abtrain::device
