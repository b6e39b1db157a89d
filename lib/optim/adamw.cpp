// AdamW (Loshchilov and Hutter 2019), with decoupled decay.
#include "optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>

#include <optional>

#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

class AdamW : public Optimizer {
 public:
  explicit AdamW(const OptimizerOptions& options)
      : Optimizer(options, {MomentKind::Gradients, MomentKind::SquaredGradients}) {}
  void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : block.slices()) {
      adamw_step(slice, rates.of(slice), options_, divisor);
    }
  }
};

}  // namespace

void adamw_step(
    const Slice& slice, const at::Tensor& rate, const OptimizerOptions& options,
    const at::Tensor& divisor) {
  at::_foreach_add_(slice.steps, 1);
  at::_fused_adamw_(
      slice.values, slice.gradients, slice.moments[0], slice.moments[1], {}, slice.steps, rate,
      options.beta1, options.beta2, slice.decay(options), options.eps,
      /*amsgrad=*/false,
      /*maximize=*/false, divisor.defined() ? std::optional(divisor) : std::nullopt, std::nullopt);
}

const OptimizerKind kAdamw{.name = "adamw", .make = make<AdamW>};

}  // namespace abtrain::optim
