#include "ops/magnitudes.h"

#include <ATen/ops/empty.h>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void magnitudes(
    const at::Tensor& u, CodeBlocks& blocks, Statistic statistic, const at::Tensor& results) {
  const c10::Device device = u.device();
  const int values = values_of(statistic);
  check_flat(u, at::kFloat, blocks.end(), device, "magnitudes: u");
  check_flat(results, at::kFloat, values * blocks.tensors(), device, "magnitudes: results");
  const at::Tensor parts = at::empty({values * blocks.size()}, u.options());
  const kernels::Magnitudes job{
      blocks.on(device),
      blocks.size(),
      blocks.firsts_on(device),
      blocks.tensors(),
      u.const_data_ptr<float>(),
      statistic,
      parts.mutable_data_ptr<float>(),
      results.mutable_data_ptr<float>()};
  dispatch("magnitudes", job, device, kernels::magnitudes);
}

}  // namespace abtrain::ops
