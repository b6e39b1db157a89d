// Counts the traffic of a worker by scope ("world", "group") and purpose.
//
// Bytes are counted as in comm/traffic.h, the same in every back end, so that runs can be compared;
// a group of one sends nothing. Seconds run from the start of a call to its end. For CUDA tensors,
// seconds are measured on the worker's stream, and are known once the GPU has reached the end of
// the call. A meter belongs to one worker and its thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "device/span.h"

namespace abtrain::comm {

struct Traffic {
  std::int64_t bytes = 0;  // sent
  std::int64_t calls = 0;
  double seconds = 0;  // in collectives, including the work of reducing

  Traffic& operator+=(const Traffic& other) {
    bytes += other.bytes;
    calls += other.calls;
    seconds += other.seconds;
    return *this;
  }
};

class TrafficMeter {
 public:
  using ByPurpose = std::array<Traffic, kPurposes>;

  void count(const std::string& scope, Purpose purpose, std::int64_t bytes);
  void count_seconds(const std::string& scope, Purpose purpose, double seconds);
  // Adds time spent in barriers and splits, whose bytes are not counted.
  void count_seconds(double seconds) {
    other_seconds_ += seconds;
  }
  // Adds a span that has ended but whose length may not be known yet.
  void count_span(const std::string& scope, Purpose purpose, device::Span span) {
    open_.push_back({scope, purpose, std::move(span)});
  }
  // Adds the spans whose length is known. If `wait` is set, waits for the GPU and adds all of them.
  void settle(bool wait);

  Traffic of(const std::string& scope, Purpose purpose) const;
  Traffic of(Purpose purpose) const;
  // The bytes of all purposes except metrics.
  std::int64_t training_bytes() const;
  double seconds() const;
  // The part of seconds() spent in barriers and splits; scopes() does not include it.
  double other_seconds() const {
    return other_seconds_;
  }

  // For reports, and to save and restore. restore() also clears other_seconds().
  const std::map<std::string, ByPurpose>& scopes() const {
    return scopes_;
  }
  void restore(std::map<std::string, ByPurpose> scopes) {
    scopes_ = std::move(scopes);
    other_seconds_ = 0;
  }

 private:
  struct Open {
    std::string scope;
    Purpose purpose;
    device::Span span;
  };

  std::map<std::string, ByPurpose> scopes_;
  std::deque<Open> open_;  // in the order in which they ended
  double other_seconds_ = 0;
};

// Returns a communicator that passes all calls on to `inner` and counts their traffic in `meter`,
// which must outlive it. Communicators split from it have the scope "group".
std::unique_ptr<Communicator> metered(
    std::unique_ptr<Communicator> inner, std::string scope, TrafficMeter& meter);

// The same without ownership: `inner` must outlive the result.
std::unique_ptr<Communicator> metered(Communicator& inner, std::string scope, TrafficMeter& meter);

}  // namespace abtrain::comm
