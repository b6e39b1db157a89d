// PyTorch's SGD with momentum, optionally Nesterov's. Weight decay is added to the gradient.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_sgd.h>

#include <optional>

#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options)
      : Optimizer(options, std::vector(options.momentum > 0 ? 1 : 0, MomentKind::Gradients)) {}
  void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : block.slices()) {
      // A zero momentum buffer gives PyTorch's first step: buf = gradient.
      at::_foreach_add_(slice.steps, 1);
      at::_fused_sgd_(
          slice.values, slice.gradients,
          moments() > 0 ? at::TensorList(slice.moments[0]) : at::TensorList(),
          slice.decay(options_), options_.momentum, rates.of(slice),
          /*dampening=*/0.0, options_.nesterov.value_or(false),
          /*maximize=*/false,
          /*is_first_step=*/false, divisor.defined() ? std::optional(divisor) : std::nullopt,
          std::nullopt);
    }
  }
};

}  // namespace

const OptimizerKind kSgd{
    .name = "sgd", .make = make<Sgd>, .penalty = Penalty::Squares, .check = check_nesterov};

}  // namespace abtrain::optim
