// Records that a worker has failed, and why. Shared by everything in one
// process that waits for other workers. The first cause is kept; later ones are
// echoes of it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace abtrain::comm {

// A collective that waited for longer than train.timeout. The message says for
// whom, and what to do.
class TimedOut : public Error {
 public:
  // `call`: the collective. `missing`: the workers that did not come; empty if
  // it is not known.
  TimedOut(const std::string& call, double seconds, const std::vector<int>& missing);

  const int worker;  // the first of them, or -1
};

class Failure {
 public:
  // True if this was the first cause.
  bool set(std::exception_ptr cause) noexcept;
  bool happened() const {
    return happened_.load(std::memory_order_acquire);
  }
  std::exception_ptr cause() const;
  // Forgets the cause: those that are left begin anew.
  void clear() noexcept;
  // If there is a cause, throws an Error(PeerLost): the cause itself if it is
  // one, otherwise a new one with the cause's message.
  void throw_if_happened() const;

 private:
  std::atomic<bool> happened_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr cause_;
};

// What the user is told about an error, and what a worker tells the others.
std::string message_of(const std::exception_ptr& cause);

// The exit code that an error stands for: that of an abtrain::Error, that of a
// wrong configuration when memory or threads do not suffice for it, else 1.
int exit_code_of(const std::exception_ptr& error);

// The error that an exit code stands for; 1, an internal error, has no kind.
std::exception_ptr error_of(std::int64_t code, const std::string& text);

// The rank of the worker that caused an error: for a TimedOut, the first worker
// that did not come, if it is known; for all other errors, `otherwise`.
int worker_of(const std::exception_ptr& error, int otherwise);

// The step of a StepError; none for all other errors.
std::optional<std::int64_t> step_of(const std::exception_ptr& error);

// True for Error(PeerLost), which only follows from another worker's failure.
bool is_echo(const std::exception_ptr& error);

}  // namespace abtrain::comm
