// Streams and events, which order the work on a GPU. On the CPU they do nothing.
//
// Workers that share one GPU queue their work on separate streams; an event
// makes one stream wait for another without making the host wait.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace abtrain::device {

// A point in the work that a thread has queued. Empty on the CPU, where work is
// done when the call returns.
class Event {
 public:
  // Marks the end of what this thread has queued on the device so far.
  static Event record(c10::Device device);

  // Makes work that this thread queues from now on start after the point.
  void order_after() const;
  // Returns once the point has been reached.
  void wait() const;
  bool is_reached() const;

 private:
  std::optional<c10::Event> event_;
};

// While this object exists, the thread that created it queues its work on a stream that no other
// thread uses.
class OwnStream {
 public:
  explicit OwnStream(c10::Device device);

 private:
  c10::OptionalStreamGuard guard_;  // can be neither copied nor moved
};

// The stream on which this thread queues its work on a GPU.
c10::Stream current_stream(c10::Device device);

// Returns once everything that this thread has queued on the device is done.
void synchronize(c10::Device device);

}  // namespace abtrain::device
