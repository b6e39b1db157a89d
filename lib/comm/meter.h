// Counts what a worker sends: by scope ("world", "group") and purpose.
//
// Bytes are those of comm/traffic.h, the same in every back end, so that runs
// can be compared; a group of one sends nothing. Seconds are those between the
// start of a call and its end, of CUDA tensors on the worker's stream: known
// once the GPU has got there. A meter belongs to one worker and its thread.
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
  double seconds = 0;  // in collectives, the work of reducing included
};

class TrafficMeter {
 public:
  using ByPurpose = std::array<Traffic, kPurposes>;

  void count(const std::string& scope, Purpose purpose, std::int64_t bytes);
  void count_seconds(const std::string& scope, Purpose purpose, double seconds);
  // Barriers and splits, which send nothing that is counted.
  void count_seconds(double seconds) {
    other_seconds_ += seconds;
  }
  // A span that has ended, but may not be known yet.
  void count_span(
      const std::string& scope, Purpose purpose, device::Span span) {
    open_.push_back({scope, purpose, std::move(span)});
  }
  // Adds what is known of such spans; `wait`: all of them, waiting for the GPU.
  void settle(bool wait);

  Traffic of(const std::string& scope, Purpose purpose) const;
  Traffic of(Purpose purpose) const;
  // Everything but metrics.
  std::int64_t training_bytes() const;
  double seconds() const;
  // Of them, in barriers and splits: no part of scopes().
  double other_seconds() const {
    return other_seconds_;
  }

  // For reports, and to save and restore; nothing else is left.
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
  std::deque<Open> open_;  // in the order of their ends
  double other_seconds_ = 0;
};

// The same communicator, metered. Its splits have the scope "group". The meter
// outlives it.
std::unique_ptr<Communicator> metered(
    std::unique_ptr<Communicator> inner,
    std::string scope,
    TrafficMeter& meter);

// The same for a communicator that outlives the metered one.
std::unique_ptr<Communicator>
metered(Communicator& inner, std::string scope, TrafficMeter& meter);

}  // namespace abtrain::comm
