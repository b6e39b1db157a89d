// Order of work on a device: streams and events, nothing at all on the CPU.
//
// Workers that share one GPU each queue on a stream of their own; an event
// orders one stream behind another without stopping the host.
#pragma once

#include <c10/core/Device.h>

#include <memory>

namespace abtrain::device {

// A point in the work that a thread has queued. Empty for the CPU, whose work
// is done when the call returns.
class Event {
 public:
  Event();
  // The end of what this thread has queued on the device by now.
  static Event record(c10::Device device);
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;
  ~Event();

  // What this thread queues from now on begins after that point.
  void order_after() const;
  // Returns when that point is reached.
  void wait() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// While it lives, this thread queues its work on a stream from the pool.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns when all that this thread has queued on the device is done.
void synchronize(c10::Device device);

}  // namespace abtrain::device
