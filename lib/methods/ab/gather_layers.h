// Divides the layers of a decomposition among the workers, and sends the results of each layer's
// owner to all workers.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"

namespace abtrain::methods {

// The sizes of a layer that may be factored.
struct LayerShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t rank = 0;  // that of a product A B; 0: a dense weight
  std::int64_t grid = 1;  // blocks per side (nn/weight.h)

  std::int64_t stored() const {
    return rank > 0 ? rank * (m + n) : m * n;
  }

  // In a decomposition, the layer's owner sends r * rows() and r * columns() numbers for factors of
  // rank r: the factors of a dense weight, or the transforms that turn A and B into new factors.
  std::int64_t rows() const {
    return rank > 0 ? rank : m;
  }
  std::int64_t columns() const {
    return rank > 0 ? rank : n;
  }
  // The number of singular values that the owner sends.
  std::int64_t values() const {
    return std::min(rows(), columns()) / grid;
  }
};

// Flops of the layer's decomposition; layers are divided among the workers by this cost.
double decomposition_cost(const LayerShape& shape);

// The indices of the layers that each worker owns.
using Owned = std::vector<std::vector<std::size_t>>;

// Divides the layers among the workers by decomposition_cost().
Owned share_out(const std::vector<LayerShape>& shapes, int workers);

// Number of elements that the layer's owner sends for factors of this rank.
std::int64_t factor_numbers(const LayerShape& shape, std::int64_t rank);

using Counts = std::vector<std::int64_t>;

// Gathers the workers' flat pieces, one after another; worker r contributes counts[r] elements.
at::Tensor gather_pieces(
    const at::Tensor& mine, const Counts& counts, comm::Communicator& world, comm::Purpose purpose);

// Every worker sends the tensors of its layers (`mine`) in one flat buffer.
// Calls `take` with each layer's index and its piece of the result. Layer i has
// sizes[i] elements.
void gather_layers(
    const Owned& owned, const Counts& sizes, const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options, comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take);

}  // namespace abtrain::methods
