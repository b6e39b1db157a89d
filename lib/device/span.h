// Seconds between two points in the work that a thread queues on a device.
//
// On the CPU, where work is done when a call returns, the host's clock measures them. On a GPU they
// are measured between two points of the thread's stream, idle time included, and are known once
// the GPU has reached the second point.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <optional>

#include "base/clock.h"

namespace abtrain::device {

class Span {
 public:
  // Sets the first point: the end of what this thread has queued so far.
  explicit Span(c10::Device device);

  // Sets the second point.
  void end();
  // Call it after end(). Empty until the GPU has reached the second point; with `wait`, waits until
  // it has.
  std::optional<double> seconds(bool wait) const;

 private:
  Stopwatch watch_;  // for the CPU
  double seconds_ = 0;
  std::optional<c10::Event> first_;  // for a GPU
  std::optional<c10::Event> second_;
};

}  // namespace abtrain::device
