#include "methods/outer_step.h"

#include <ATen/core/grad_mode.h>

#include "methods/method_kind.h"

namespace abtrain::methods {

void OuterStep::operator()(at::Tensor x, at::Tensor change, at::Tensor velocity) const {
  const at::NoGradGuard no_grad;
  if (!has_velocity()) {
    x.add_(change, lr);
    return;
  }
  at::Tensor& gradient = change.neg_();
  velocity.mul_(momentum).add_(gradient);
  if (rule == OuterRule::Nesterov) {
    x.sub_(gradient.add_(velocity, momentum), lr);
  } else {
    x.sub_(velocity, lr);
  }
}

OuterStep outer_step_of(const MethodOptions& options) {
  const OuterOptions& outer = options.outer;
  const OuterRule rule = outer.name.value_or(kind_of(options).outer);
  return rule == OuterRule::Average ? OuterStep() : OuterStep{rule, outer.lr, outer.momentum};
}

}  // namespace abtrain::methods
