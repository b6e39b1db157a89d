// A bounded queue of items that one thread makes ahead of the thread that takes them:
//
//   Prefetcher<int> numbers(4, [](const auto& put, const auto& /*stop*/) {
//     for (int i = 0; put(i); ++i) {}
//   });
//   numbers.take();  // 0
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

// At most `capacity` finished items wait; one more may be in the making.
template <class T>
class Prefetcher {
 public:
  // Hands an item over, waiting while the queue is full. Returns false if no more items are wanted.
  using Put = std::function<bool(T)>;

  // `produce` runs on its own thread. It must return when `put` returns false, and any other wait
  // in it must end on `stop`. take() rethrows an exception of `produce` after the items made before
  // it.
  using Produce = std::function<void(const Put& put, const std::stop_token& stop)>;
  Prefetcher(std::size_t capacity, Produce produce)
      : capacity_(capacity),
        thread_([this, produce = std::move(produce)](const std::stop_token& stop) {
          try {
            produce([&](T thing) { return put(stop, std::move(thing)); }, stop);
          } catch (...) {
            const std::lock_guard lock(mutex_);
            error_ = std::current_exception();
          }
          filled_.notify_one();
        }) {}

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
  // Whether take() would return without waiting.
  bool has_one() {
    const std::lock_guard lock(mutex_);
    return !ready_.empty();
  }
  double waited() const {
    return waited_;
  }

 private:
  bool put(const std::stop_token& stop, T thing) {
    std::unique_lock lock(mutex_);
    if (!taken_.wait(lock, stop, [&] { return ready_.size() < capacity_; }) ||
        stop.stop_requested()) {
      return false;
    }
    ready_.push_back(std::move(thing));
    filled_.notify_one();
    return true;
  }

  const std::size_t capacity_;
  double waited_ = 0;
  std::mutex mutex_;
  std::condition_variable_any taken_;
  std::condition_variable filled_;
  std::deque<T> ready_;
  std::exception_ptr error_;
  // Last, so that the thread is stopped and joined before the other members are destroyed.
  std::jthread thread_;
};

}  // namespace abtrain::data
