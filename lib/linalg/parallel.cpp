#include "linalg/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>

#include "base/threads.h"

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
  // at::set_num_threads() sets a part of LibTorch's state for all threads of the process.
  struct NumThreads {
    int before = at::get_num_threads();
    ~NumThreads() {
      at::set_num_threads(before);
    }
  } restored_at_end;
  for_each_on_threads(static_cast<std::size_t>(threads), order.size(), [&](std::size_t i) {
    at::set_num_threads(1);
    body(order[i]);
  });
}

}  // namespace abtrain::linalg
