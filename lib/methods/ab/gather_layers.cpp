#include "methods/ab/gather_layers.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "base/mapped.h"
#include "device/side_stream.h"
#include "linalg/svd.h"
#include "methods/average.h"

namespace abtrain::methods {

double decomposition_cost(const LayerShape& shape) {
  if (shape.rank == 0) {
    return linalg::decomposition_cost(
        std::max(shape.m, shape.n), std::min(shape.m, shape.n), shape.grid);
  }
  const auto side = static_cast<double>(shape.rank);
  return (side * side * static_cast<double>(shape.m + shape.n) + 20 * side * side * side) /
         static_cast<double>(shape.grid);
}

Owned share_out(const std::vector<LayerShape>& shapes, int workers) {
  Owned owned(static_cast<std::size_t>(workers));
  const std::vector<int> owner = linalg::balance(mapped(shapes, decomposition_cost), workers);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    owned[static_cast<std::size_t>(owner[i])].push_back(i);
  }
  return owned;
}

std::int64_t factor_numbers(const LayerShape& shape, std::int64_t rank) {
  return rank * (shape.rows() + shape.columns());
}

at::Tensor gather_pieces(
    const at::Tensor& mine, const Counts& counts, comm::Communicator& world,
    comm::Purpose purpose) {
  const auto numel = std::accumulate(counts.begin(), counts.end(), 0L);
  const at::Tensor all = at::empty({numel}, mine.options());
  world.all_gather(all, mine, counts, purpose).wait();
  return all;
}

void gather_layers(
    const Owned& owned, const Counts& sizes, const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options, comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take) {
  Counts counts;
  for (const auto& layers : owned) {
    std::int64_t count = 0;
    for (const std::size_t i : layers) {
      count += sizes[i];
    }
    counts.push_back(count);
  }
  // The tensors may have been made on another stream.
  std::ranges::for_each(mine, device::keep_for_current_stream);
  const at::Tensor out =
      gather_pieces(flattened(mine).to(options), counts, world, comm::Purpose::Factors);
  std::int64_t offset = 0;
  for (const auto& layers : owned) {
    for (const std::size_t i : layers) {
      take(i, out.narrow(0, offset, sizes[i]));
      offset += sizes[i];
    }
  }
}

}  // namespace abtrain::methods
