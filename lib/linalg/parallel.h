// Processes several matrices at once. The steps of a decomposition that do not become faster with
// more threads take half of its time, so each thread takes whole matrices instead.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace abtrain::linalg {

// Returns the indices of `costs`, the largest cost first; equal costs stay in their order.
std::vector<std::size_t> most_expensive_first(const std::vector<double>& costs);

// Calls body(i) for every i < costs.size(), most expensive first, on up to `threads` threads,
// including the calling one. Each of them runs its tensor operations single-threaded. If `threads`
// is 1, the bodies run on the calling thread, with its own number of threads. Returns when all are
// done; throws the error of the first body that failed (bodies not yet started are then skipped).
void for_each_matrix(
    const std::vector<double>& costs, int threads, const std::function<void(std::size_t)>& body);

}  // namespace abtrain::linalg
