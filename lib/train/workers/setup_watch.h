// Watches a run until its first step, which can take minutes: shows the current work, and ends the
// process soon after a signal that asks for a stop, even if the signal made the current work fail
// with an error. The work of the main thread until then (a large factorization, waiting for other
// processes) cannot be interrupted otherwise.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"

namespace abtrain::train {

class SetupWatch {
 public:
  // Ends the process, giving `message` as the reason; does not return.
  using Leave = std::function<void(const std::string& message)>;

  // Once: reports slow work a single time, in a plain line; for processes that share a terminal.
  enum class Shows { Progress, Once };

  SetupWatch(Log& log, std::string doing, Shows shows = Shows::Progress);
  ~SetupWatch();

  // Announces the next work, such as "reading cifar10".
  void doing(std::string what);
  // Names the workers that this one waits for; "": none.
  void waiting_for(const std::string& names);
  // Replaces the default, which prints the message and exits with code 75.
  void set_leave(Leave leave);
  // Call when the first step begins: from then on the training loop handles signals.
  void end();

 private:
  void watch(const std::stop_token& stop);
  void show();
  void leave_on_signal();

  const int errors_ = std::uncaught_exceptions();
  Log& log_;
  const Shows shows_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::string what_;
  std::string waits_for_;
  Stopwatch since_;
  double shown_at_ = 0;
  Leave leave_;
  std::jthread thread_;
};

}  // namespace abtrain::train
