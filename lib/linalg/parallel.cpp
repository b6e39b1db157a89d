#include "linalg/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace abtrain::linalg {

std::vector<std::size_t> most_expensive_first(const std::vector<double>& costs) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return costs[i]; });
  return order;
}

void for_each_matrix(
    const std::vector<double>& costs, int threads, const std::function<void(std::size_t)>& body) {
  const std::vector<std::size_t> order = most_expensive_first(costs);
  threads = std::min(threads, static_cast<int>(costs.size()));
  if (threads <= 1) {
    std::for_each(order.begin(), order.end(), body);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    at::set_num_threads(1);
    for (auto i = next++; i < order.size(); i = next++) {
      try {
        body(order[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) {
          error = std::current_exception();
        }
        next = order.size();
      }
    }
  };
  const int before = at::get_num_threads();
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t) {
      team.emplace_back(work);
    }
  }
  // LibTorch applies a part of this setting to all threads of the process.
  at::set_num_threads(before);
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace abtrain::linalg
