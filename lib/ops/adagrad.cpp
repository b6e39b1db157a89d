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
  const auto check = [&](const at::Tensor& tensor, const char* what) {
    check_flat(tensor, at::kFloat, blocks.end(), device, what);
  };
  check(state.x, "adagrad_step: x");
  check(state.g, "adagrad_step: g");
  check(state.s, "adagrad_step: s");
  if (state.z.defined()) {
    check(state.z, "adagrad_step: z");
  }
  if (state.start.defined()) {
    check(state.start, "adagrad_step: start");
  }
  check_flat(l1, at::kFloat, blocks.tensors(), device, "adagrad_step: l1");
  // No-op for a GPU's fp32 scalars; makes 4-byte copies of the CPU's doubles.
  const at::Tensor scalars[] = {
      rate.to(at::kFloat), steps.to(at::kFloat),
      divisor.defined() ? divisor.to(at::kFloat) : at::Tensor()};
  for (const at::Tensor& scalar : scalars) {
    ABT_ASSERT(
        !scalar.defined() || (scalar.numel() == 1 && scalar.device() == device),
        "adagrad_step: expected scalars on {}, got {} on {}", device, scalar.sizes(),
        scalar.device());
  }
  const auto pointer = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
  };
  const kernels::AdagradStep job{
      blocks.on(device),   blocks.size(),       pointer(state.x),     pointer(state.g),
      pointer(state.s),    pointer(state.z),    pointer(state.start), l1.const_data_ptr<float>(),
      pointer(scalars[0]), pointer(scalars[1]), pointer(scalars[2]),  static_cast<float>(delta)};
  dispatch("adagrad_step", job, device, kernels::adagrad_step);
}

}  // namespace abtrain::ops
