#include "methods/ab/gather_layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "device/side_stream.h"
#include "methods/average.h"

namespace abtrain::methods {

double decomposition_cost(const LayerShape& shape) {
  if (shape.rank == 0) {
    return linalg::decomposition_cost(shape.m, shape.n);
  }
  const auto side = static_cast<double>(shape.rank);
  return side * side * static_cast<double>(shape.m + shape.n) + 20 * side * side * side;
}

Owned share_out(const std::vector<LayerShape>& shapes, int workers) {
  Owned owned(static_cast<std::size_t>(workers));
  // Each kind apart: a layer that stays dense then keeps its owner, who knows
  // where the next search begins, whatever the ranks of the others become.
  for (const bool products : {false, true}) {
    std::vector<std::size_t> layers;
    std::vector<double> costs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if ((shapes[i].rank > 0) == products) {
        layers.push_back(i);
        costs.push_back(decomposition_cost(shapes[i]));
      }
    }
    const std::vector<int> owner = linalg::balance(costs, workers);
    for (std::size_t j = 0; j < layers.size(); ++j) {
      owned[static_cast<std::size_t>(owner[j])].push_back(layers[j]);
    }
  }
  return owned;
}

bool may_be_partial(linalg::SvdRoute route, const LayerShape& shape) {
  return shape.rank == 0 && linalg::may_be_partial(route, shape.n);
}

std::int64_t spectrum_numbers(linalg::SvdRoute route, const LayerShape& shape) {
  return shape.columns() + (may_be_partial(route, shape) ? 3 : 0);
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

at::Tensor pack_spectrum(const linalg::Spectrum& spectrum, bool partial) {
  const auto known = std::ssize(spectrum.singular_values);
  auto numbers = at::zeros({partial ? spectrum.n + 3 : known}, at::kDouble);
  double* to = numbers.mutable_data_ptr<double>();
  if (partial) {
    *to++ = static_cast<double>(known);
    *to++ = spectrum.rest_energy;
    *to++ = spectrum.rest_bound;
  }
  std::copy(spectrum.singular_values.begin(), spectrum.singular_values.end(), to);
  return numbers;
}

void unpack_spectrum(const at::Tensor& numbers, bool partial, linalg::Spectrum& spectrum) {
  const double* from = numbers.const_data_ptr<double>();
  auto known = numbers.numel();
  if (partial) {
    known = static_cast<std::int64_t>(*from++);
    spectrum.rest_energy = *from++;
    spectrum.rest_bound = *from++;
  }
  spectrum.singular_values.assign(from, from + known);
}

}  // namespace abtrain::methods
