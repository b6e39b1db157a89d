// A stream beside that of a thread: for work that others need not wait for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace abtrain::device {

// Keeps one stream of the pool, so that memory that was freed on it serves it
// again. On the CPU everything runs where it is called.
class SideStream {
 public:
  explicit SideStream(c10::Device device);
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream();

  // What `body` queues on the device begins after all that this thread has
  // queued by now; what the thread queues afterwards begins after that. Also
  // where `body` throws.
  void run(const std::function<void()>& body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The current stream of this thread uses a tensor made on another one: its
// memory is not given out again before that is done.
void keep_for_current_stream(const at::Tensor& tensor);

}  // namespace abtrain::device
