#include "train/workers/meeting_watch.h"

#include <chrono>
#include <iostream>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/signals.h"
#include "train/workers/leave.h"

namespace abtrain::train {

namespace {

// After waiting this long, each process says once what it is waiting for.
constexpr double kPatience = 10;                 // seconds
constexpr std::chrono::milliseconds kLook{100};  // between looks for signals

}  // namespace

MeetingWatch::MeetingWatch(std::string text)
    : text_(std::move(text)), thread_([this](const std::stop_token& end) { watch(end); }) {}

MeetingWatch::~MeetingWatch() {
  if (std::uncaught_exceptions() > errors_) {
    leave_on_signal();
  }
}

void MeetingWatch::watch(const std::stop_token& end) {
  std::unique_lock lock(mutex_);
  const Stopwatch waited;
  bool told = false;
  while (!ended_.wait_for(lock, end, kLook, [&] { return end.stop_requested(); })) {
    leave_on_signal();
    if (!told && waited.seconds() > kPatience) {
      told = true;
      std::cerr << formatted("abtrain: {}\n", text_) << std::flush;
    }
  }
}

void MeetingWatch::leave_on_signal() const {
  if (const int signal = StopSignals::requested(); signal != 0) {
    std::cerr << formatted("abtrain: {}; stopped by {}\n", text_, signal_name(signal));
    leave(static_cast<int>(ErrorKind::Stopped));
  }
}

}  // namespace abtrain::train
