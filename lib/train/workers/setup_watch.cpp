#include "train/workers/setup_watch.h"

#include <chrono>
#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/signals.h"
#include "train/workers/leave.h"

namespace abtrain::train {

namespace {

constexpr std::chrono::milliseconds kPause{50};

// Seconds. On a terminal a live line appears after kLiveAfter and is refreshed every kLiveEvery;
// elsewhere plain lines, only for work that takes long.
constexpr double kLiveAfter = 0.3;
constexpr double kLiveEvery = 0.2;
constexpr double kPlainAfter = 10;
constexpr double kPlainEvery = 30;

[[noreturn]] void leave_alone(const std::string& message) {
  std::cerr << formatted("abtrain: {}\n", message) << std::flush;
  leave(static_cast<int>(ErrorKind::Stopped));
}

}  // namespace

SetupWatch::SetupWatch(Log& log, std::string doing, Shows shows)
    : log_(log),
      shows_(shows),
      what_(std::move(doing)),
      leave_(leave_alone),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

SetupWatch::~SetupWatch() {
  const bool has_failed = thread_.joinable() && std::uncaught_exceptions() > errors_;
  end();
  if (has_failed) {
    leave_on_signal();
  }
}

void SetupWatch::doing(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  since_.restart();
  shown_at_ = 0;
}

void SetupWatch::waiting_for(const std::string& names) {
  const std::lock_guard lock(mutex_);
  waits_for_ = names;
}

void SetupWatch::set_leave(Leave leave) {
  const std::lock_guard lock(mutex_);
  leave_ = std::move(leave);
}

void SetupWatch::end() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
    log_.live("");
  }
}

void SetupWatch::show() {
  const bool once = shows_ == Shows::Once;
  if (once && shown_at_ > 0) {
    return;
  }
  const bool live = log_.is_live() && !once;
  const double seconds = since_.seconds();
  const double due = shown_at_ == 0 ? (live ? kLiveAfter : kPlainAfter)
                                    : shown_at_ + (live ? kLiveEvery : kPlainEvery);
  if (seconds < due) {
    return;
  }
  shown_at_ = seconds;
  const std::string what = waits_for_.empty() ? what_ : "waiting for " + waits_for_;
  if (live) {
    log_.live(formatted("{}, {}", what, human_seconds(seconds)));
  } else {
    log_.info("{}: {} so far", what, human_seconds(seconds));
  }
}

void SetupWatch::watch(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, stop, kPause, [&] { return stop.stop_requested(); })) {
    if (StopSignals::requested() != 0) {
      lock.unlock();
      leave_on_signal();
      return;
    }
    show();
  }
}

void SetupWatch::leave_on_signal() {
  const int signal = StopSignals::requested();
  if (signal == 0) {
    return;
  }
  std::unique_lock lock(mutex_);
  const std::string message = formatted(
      "stopped by {} before the first step ({}): nothing is lost; the same "
      "command starts again",
      signal_name(signal), what_);
  const Leave leave = leave_;
  lock.unlock();
  log_.live("");
  leave(message);
}

}  // namespace abtrain::train
