#include "ops/magnitudes.h"

#include <ATen/ops/empty.h>

#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void magnitudes(
    const at::Tensor& u, CodeBlocks& blocks, Statistic statistic, const at::Tensor& results,
    const at::Tensor& cuts) {
  const c10::Device device = u.device();
  const int values = values_of(statistic);
  const at::Tensor parts = at::empty({values * blocks.size()}, u.options());
  const kernels::Magnitudes job{
      blocks.on(device),
      blocks.size(),
      blocks.firsts_on(device),
      blocks.tensors(),
      flat<const float>(u, blocks.end(), device, "magnitudes: u"),
      statistic,
      cuts.defined() ? flat<const float>(cuts, blocks.tensors(), device, "magnitudes: cuts")
                     : nullptr,
      parts.mutable_data_ptr<float>(),
      flat<float>(results, values * blocks.tensors(), device, "magnitudes: results")};
  dispatch("magnitudes", job, device, kernels::magnitudes);
}

}  // namespace abtrain::ops
