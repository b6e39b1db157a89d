// Records that a worker has failed, and why. Each back end's world and each control channel has one
// record. It keeps the first cause, because later ones are only echoes of it. Thread-safe.
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

// The error of a collective that waited longer than train.timeout. The message names the missing
// workers and says what to do.
class TimedOut : public Error {
 public:
  // `call`: the collective. `missing`: the workers that did not take part; empty if unknown.
  TimedOut(const std::string& call, double seconds, const std::vector<int>& missing);

  const int worker;  // the first of `missing`, or -1
};

class Failure {
 public:
  // Keeps the cause and returns true if it is the first.
  bool set(std::exception_ptr cause) noexcept;
  bool happened() const {
    return happened_.load(std::memory_order_acquire);
  }
  std::exception_ptr cause() const;
  // Forgets the cause, so that the workers that are left can start again.
  void clear() noexcept;
  // If there is a cause, throws an Error(PeerLost): the cause itself if it is one, otherwise a new
  // one with the cause's message.
  void throw_if_happened() const;

 private:
  std::atomic<bool> happened_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr cause_;
};

// The message about an error for users and for the other workers.
std::string message_of(const std::exception_ptr& cause);

// The exit code for an error: an abtrain::Error's own code; that of ErrorKind::Config if memory or
// threads do not suffice; that of ErrorKind::Io for a file system error; otherwise 1.
int exit_code_of(const std::exception_ptr& error);

// The reverse: makes an error from an exit code and a message. Code 1 gives a std::runtime_error.
std::exception_ptr error_of(std::int64_t code, const std::string& text);

// Returns the rank of the worker that caused an error: the first missing worker of a TimedOut that
// names one; for any other error, `otherwise`.
int worker_of(const std::exception_ptr& error, int otherwise);

// The training step of a StepError; none for all other errors.
std::optional<std::int64_t> step_of(const std::exception_ptr& error);

// True for Error(PeerLost), which only follows from another worker's failure.
bool is_echo(const std::exception_ptr& error);

}  // namespace abtrain::comm
