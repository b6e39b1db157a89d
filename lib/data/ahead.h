// Things that one thread makes ahead of another one that takes them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace abtrain::data {

// At most `room` things lie ready; one more may be in the making.
template <class T>
class Ahead {
 public:
  // Hands a thing over, waiting for room; false: nothing more is wanted.
  using Put = std::function<bool(T)>;

  // `produce` runs on a thread of its own until it returns or `put` says false;
  // what else it waits for ends with `stop`. What it throws comes out of take(),
  // behind what was made before.
  using Produce =
      std::function<void(const Put& put, const std::stop_token& stop)>;
  Ahead(std::size_t room, Produce produce)
      : room_(room),
        thread_(
            [this, produce = std::move(produce)](const std::stop_token& stop) {
              try {
                produce(
                    [&](T thing) { return put(stop, std::move(thing)); }, stop);
              } catch (...) {
                const std::lock_guard lock(mutex_);
                error_ = std::current_exception();
              }
              filled_.notify_one();
            }) {}

  // Waits for the next one.
  T take() {
    std::unique_lock lock(mutex_);
    if (ready_.empty() && !error_) {
      const Stopwatch watch;
      filled_.wait(lock, [&] { return !ready_.empty() || error_; });
      waited_ += watch.seconds();
    }
    if (ready_.empty()) {
      std::rethrow_exception(error_);
    }
    T thing = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    taken_.notify_one();
    return thing;
  }
  // Seconds that take() has waited.
  double waited() const {
    return waited_;
  }

 private:
  bool put(const std::stop_token& stop, T thing) {
    std::unique_lock lock(mutex_);
    if (!taken_.wait(lock, stop, [&] { return ready_.size() < room_; }) ||
        stop.stop_requested()) {
      return false;
    }
    ready_.push_back(std::move(thing));
    filled_.notify_one();
    return true;
  }

  const std::size_t room_;
  double waited_ = 0;
  std::mutex mutex_;
  std::condition_variable_any taken_;
  std::condition_variable filled_;
  std::deque<T> ready_;
  std::exception_ptr error_;
  // Last: asked to stop and joined before the rest goes.
  std::jthread thread_;
};

}  // namespace abtrain::data
