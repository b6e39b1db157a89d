// The order of work on a device: streams and events. On the CPU they do
// nothing.
//
// Workers that share one GPU queue their work on separate streams; an event
// makes one stream wait for another without making the host wait.
#pragma once

#include <c10/core/Device.h>

#include <memory>

namespace abtrain::device {

// A point in the work that a thread has queued. Empty on the CPU, where work is
// done when the call returns.
class Event {
 public:
  // Marks the end of what this thread has queued on the device so far.
  static Event record(c10::Device device);

  // What this thread queues from now on starts after that point.
  void order_after() const;
  // Returns once that point has been reached.
  void wait() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// While this object exists, its thread queues its work on a stream that no other
// thread uses.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Returns once everything that this thread has queued on the device is done.
void synchronize(c10::Device device);

}  // namespace abtrain::device
