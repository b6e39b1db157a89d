#include "methods/local/outer_step.h"

#include <ATen/core/grad_mode.h>

namespace abtrain::methods {

void outer_step(
    const OuterSgd& sgd,
    at::Tensor x,
    at::Tensor change,
    at::Tensor velocity) {
  const at::NoGradGuard no_grad;
  if (sgd.momentum == 0) {
    x.add_(change, sgd.lr);
    return;
  }
  at::Tensor& gradient = change.neg_();
  velocity.mul_(sgd.momentum).add_(gradient);
  x.sub_(gradient.add_(velocity, sgd.momentum), sgd.lr);
}

}  // namespace abtrain::methods
