// Runs one function, or a loop, on several threads at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace abtrain {

// Calls `work` on this thread and `threads` - 1 more. Returns when all calls have returned;
// rethrows the first error.
void run_on_threads(std::size_t threads, const auto& work) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = error ? error : std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) {
      others.emplace_back(guarded);
    }
    guarded();
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

// Calls body(i) for i = 0 .. count - 1 on up to `threads` threads, each of which
// repeatedly takes the next i. Once a call has thrown, no further calls start;
// when those under way have returned, the first error is rethrown.
void for_each_on_threads(std::size_t threads, std::size_t count, const auto& body) {
  std::atomic<std::size_t> next{0};
  run_on_threads(std::min(threads, count), [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) {
        body(i);
      }
    } catch (...) {
      next = count;
      throw;
    }
  });
}

}  // namespace abtrain
