// Seconds between two moments of the work that a thread queues on a device.
//
// On the CPU, whose work is done when a call returns, by the host's clock. On a
// GPU between the two points of this thread's stream, idle time included: the
// figure is there when the GPU has got to the second one.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>

namespace abtrain::device {

class Span {
 public:
  // The first moment is now: the end of what this thread has queued.
  static Span begin(c10::Device device);
  Span(Span&&) noexcept;
  Span& operator=(Span&&) noexcept;
  ~Span();

  // The second moment.
  void end();
  // After end(). None while a GPU is on its way there; `wait`: waits for it.
  std::optional<double> seconds(bool wait) const;

 private:
  struct Impl;
  explicit Span(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace abtrain::device
