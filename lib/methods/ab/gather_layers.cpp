#include "methods/ab/gather_layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "device/side_stream.h"

namespace abtrain::methods {

void gather_layers(
    const Owned& owned,
    const Counts& sizes,
    const std::vector<at::Tensor>& mine,
    const at::TensorOptions& options,
    comm::Communicator& world,
    const std::function<void(std::size_t, const at::Tensor&)>& take) {
  Counts counts;
  for (const auto& layers : owned) {
    std::int64_t count = 0;
    for (const std::size_t i : layers) {
      count += sizes[i];
    }
    counts.push_back(count);
  }
  const auto rank = static_cast<std::size_t>(world.rank());
  at::Tensor in = at::empty({counts[rank]}, options);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : mine) {
    // The tensor may have been made on another stream.
    device::keep_for_current_stream(tensor);
    in.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
    offset += tensor.numel();
  }
  ABT_ASSERT(offset == counts[rank], offset, " numbers for ", counts[rank]);
  at::Tensor out =
      at::empty({std::accumulate(counts.begin(), counts.end(), 0L)}, options);
  world.all_gather(out, in, counts, comm::Purpose::Factors).wait();
  offset = 0;
  for (const auto& layers : owned) {
    for (const std::size_t i : layers) {
      take(i, out.narrow(0, offset, sizes[i]));
      offset += sizes[i];
    }
  }
}

std::int64_t spectrum_numbers(linalg::SvdRoute route, std::int64_t n) {
  return linalg::may_be_partial(route, n) ? n + 3 : n;
}

at::Tensor pack_spectrum(
    const linalg::Spectrum& spectrum,
    bool may_be_partial) {
  const auto known = std::ssize(spectrum.singular_values);
  ABT_ASSERT(
      may_be_partial || known == spectrum.n,
      "layer '",
      spectrum.name,
      "': ",
      known,
      " values of ",
      spectrum.n);
  auto numbers =
      at::zeros({spectrum.n + (may_be_partial ? 3 : 0)}, at::kDouble);
  double* to = numbers.mutable_data_ptr<double>();
  if (may_be_partial) {
    *to++ = static_cast<double>(known);
    *to++ = spectrum.rest_energy;
    *to++ = spectrum.rest_bound;
  }
  std::copy(
      spectrum.singular_values.begin(), spectrum.singular_values.end(), to);
  return numbers;
}

void unpack_spectrum(
    const at::Tensor& numbers,
    bool may_be_partial,
    linalg::Spectrum& spectrum) {
  const double* from = numbers.const_data_ptr<double>();
  auto known = spectrum.n;
  if (may_be_partial) {
    known = static_cast<std::int64_t>(*from++);
    spectrum.rest_energy = *from++;
    spectrum.rest_bound = *from++;
  }
  spectrum.singular_values.assign(from, from + known);
}

}  // namespace abtrain::methods
