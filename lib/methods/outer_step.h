// The outer step, the same for all methods: how a synchronization applies the mean change of the
// workers' parameters. With the outer gradient g = -change:
//   average   x <- x - g, the mean itself
//   sgd       v <- momentum v + g;  x <- x - lr v
//   nesterov  v <- momentum v + g;  x <- x - lr (g + momentum v)
// as in torch.optim.SGD. Source: Douillard et al. 2023, arXiv 2311.08105,
// algorithm 1.
#pragma once

#include <ATen/core/Tensor.h>

#include "methods/method_options.h"

namespace abtrain::methods {

struct OuterStep {
  OuterRule rule = OuterRule::Average;
  double lr = 1;
  double momentum = 0;

  bool has_velocity() const {
    return rule != OuterRule::Average && momentum > 0;
  }
  // All tensors are flat fp32 of one length. `x`: the parameters that the workers started from;
  // overwritten by the parameters that they continue from. `change`: mean of (a worker's
  // parameters - x); overwritten. `velocity`: zero before the first step; not used without
  // momentum.
  void operator()(at::Tensor x, at::Tensor change, at::Tensor velocity) const;
};

// The outer step that method.outer asks for, with the method's default rule for `auto`.
OuterStep outer_step_of(const MethodOptions& options);

}  // namespace abtrain::methods
