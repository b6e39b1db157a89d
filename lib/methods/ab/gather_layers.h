// How the layers of a decomposition are divided among the workers, and how what
// the owner of a layer computed is sent to all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/communicator.h"
#include "linalg/batch.h"
#include "linalg/rank_rule.h"

namespace abtrain::methods {

// The sizes of a layer that may be factored.
struct LayerShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t rank = 0;  // of the product A B; 0: a dense weight

  std::int64_t stored() const {
    return rank > 0 ? rank * (m + n) : m * n;
  }

  // In a decomposition, its owner sends factors of rank r as rows() x r and r x columns(): those of
  // a dense weight, or the transforms that turn A and B into new factors.
  std::int64_t rows() const {
    return rank > 0 ? rank : m;
  }
  std::int64_t columns() const {
    return rank > 0 ? rank : n;
  }
};

// Flops of its decomposition, by which layers are divided among the workers.
double decomposition_cost(const LayerShape& shape);

// The indices of the layers that each worker owns.
using Owned = std::vector<std::vector<std::size_t>>;

// Divides layers among the workers: the indices of each worker's layers, dense
// weights before products.
Owned share_out(const std::vector<LayerShape>& shapes, int workers);

// True if its spectrum may be partial.
bool may_be_partial(linalg::SvdRoute route, const LayerShape& shape);

// Element count of its spectrum on the wire, and of its factors of rank r.
std::int64_t spectrum_numbers(linalg::SvdRoute route, const LayerShape& shape);
std::int64_t factor_numbers(const LayerShape& shape, std::int64_t rank);

using Counts = std::vector<std::int64_t>;

// The flat pieces of all workers, one after another; worker r brings counts[r]
// elements.
at::Tensor gather_pieces(
    const at::Tensor& mine, const Counts& counts, comm::Communicator& world, comm::Purpose purpose);

// Every worker sends the tensors of its layers (`mine`) in one flat buffer.
// Calls `take` with each layer's index and its piece of the result. Layer i has
// sizes[i] elements.
void gather_layers(
    const Owned& owned, const Counts& sizes, const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options, comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take);

// A spectrum on the wire: all its values or, if it may be partial, n + 3
// numbers, whatever it holds: how many values are known, the energy and the
// bound of the rest, and the values.
at::Tensor pack_spectrum(const linalg::Spectrum& spectrum, bool partial);
// Fills a spectrum whose name, m and n are set.
void unpack_spectrum(const at::Tensor& numbers, bool partial, linalg::Spectrum& spectrum);

}  // namespace abtrain::methods
