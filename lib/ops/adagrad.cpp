#include "ops/adagrad.h"

#include "device/tensor_text.h"
#include "kernels/blocks/adagrad.h"
#include "ops/flat_check.h"
#include "ops/team_host.h"

namespace abtrain::ops {

void adagrad_step(
    const AdagradState& state, CodeBlocks& blocks, const at::Tensor& l1, const at::Tensor& rate,
    const at::Tensor& steps, const at::Tensor& divisor, double delta) {
  const c10::Device device = state.x.device();
  // Leaves a GPU's fp32 scalars as they are; copies the CPU's doubles to fp32.
  const at::Tensor scalars[] = {
      rate.to(at::kFloat), steps.to(at::kFloat),
      divisor.defined() ? divisor.to(at::kFloat) : at::Tensor()};
  for (const at::Tensor& scalar : scalars) {
    ABT_ASSERT(
        !scalar.defined() || (scalar.numel() == 1 && scalar.device() == device),
        "adagrad_step: expected scalars on {}, got {} on {}", device, scalar.sizes(),
        scalar.device());
  }
  const std::int64_t numel = blocks.end();
  const kernels::AdagradStep job{
      blocks.on(device),
      blocks.size(),
      flat<float>(state.x, numel, device, "adagrad_step: x"),
      flat<const float>(state.g, numel, device, "adagrad_step: g"),
      flat<float>(state.s, numel, device, "adagrad_step: s"),
      flat_or_null<float>(state.z, numel, device, "adagrad_step: z"),
      flat_or_null<float>(state.start, numel, device, "adagrad_step: start"),
      flat<const float>(l1, blocks.tensors(), device, "adagrad_step: l1"),
      scalars[0].const_data_ptr<float>(),
      scalars[1].const_data_ptr<float>(),
      divisor.defined() ? scalars[2].const_data_ptr<float>() : nullptr,
      static_cast<float>(delta)};
  dispatch("adagrad_step", job, device, kernels::adagrad_step);
}

}  // namespace abtrain::ops
