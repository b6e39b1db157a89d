// Work interleaved with collectives: a coroutine that yields each collective (comm::Pending) before
// it needs the result. Its owner can alternate between several coroutines, so that one computes
// while another's collective is in flight.
//
//   Rounds mean(at::Tensor x, comm::Communicator& c, comm::Purpose p) {
//     co_yield c.all_reduce(x, comm::ReduceOp::Sum, p);
//     x.div_(c.size());
//   }
//
// A thread-local guard (at::NoGradGuard) must not live across a co_yield; the owner holds it around
// resume().
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "comm/communicator.h"

namespace abtrain::compress {

class [[nodiscard]] Rounds {
 public:
  struct promise_type {
    comm::Pending pending;
    std::exception_ptr error;

    Rounds get_return_object() {
      return Rounds(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept {
      return {};
    }
    std::suspend_always final_suspend() noexcept {
      return {};
    }
    std::suspend_always yield_value(comm::Pending next) {
      pending = std::move(next);
      return {};
    }
    void return_void() {}
    void unhandled_exception() {
      error = std::current_exception();
    }
  };

  Rounds(Rounds&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Rounds() {
    if (handle_) {
      // Waits, because a collective in flight still writes to the coroutine's tensors.
      { const comm::Pending last = take_pending(); }
      handle_.destroy();
    }
  }

  // Runs up to the next collective, which is then pending; returns false if there is none. Wait for
  // the previous collective first. Rethrows the coroutine's error.
  bool resume() {
    handle_.resume();
    if (handle_.promise().error) {
      std::rethrow_exception(std::exchange(handle_.promise().error, {}));
    }
    return !handle_.done();
  }
  comm::Pending take_pending() {
    return std::exchange(handle_.promise().pending, {});
  }
  // Waits for the pending collective, if there is one.
  void wait() {
    handle_.promise().pending.wait();
  }

 private:
  explicit Rounds(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace abtrain::compress
