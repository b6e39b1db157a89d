// Runs one function on several threads at once.
#pragma once

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace abtrain {

// Calls `work` on this thread and `threads` - 1 more. Returns when all calls
// have; throws the error of the first that failed.
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

}  // namespace abtrain
