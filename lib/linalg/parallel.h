// Several matrices at once: the steps of a decomposition that do not scale over
// threads make up half of its time, so threads take whole matrices instead.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace abtrain::linalg {

// Calls body(i) for every i < costs.size(), dearest first, on up to `threads`
// threads of which each runs its tensor operations alone; at 1 they run on the
// caller, with its own number of threads. Returns when all are done; throws the
// error of the first body that failed (the rest are then not started).
void for_each_matrix(
    const std::vector<double>& costs,
    int threads,
    const std::function<void(std::size_t)>& body);

}  // namespace abtrain::linalg
