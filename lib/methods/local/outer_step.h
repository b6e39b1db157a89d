// The outer step of methods with local steps: SGD with Nesterov's momentum as
// torch.optim.SGD has it, on the outer gradient g = x - mean of the workers'
// parameters. Douillard et al. 2023, arXiv 2311.08105, algorithm 1:
//   v <- momentum v + g;  x <- x - lr (g + momentum v)
// lr 1 and momentum 0 make x the mean itself.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::methods {

struct OuterSgd {
  double lr = 1;
  double momentum = 0;
};

// All flat fp32 of one size. `x`: what the workers started from, becomes what
// they go on from. `change`: mean of (a worker's parameters - x), overwritten.
// `velocity`: zero before the first step; not looked at without momentum.
void outer_step(
    const OuterSgd& sgd,
    at::Tensor x,
    at::Tensor change,
    at::Tensor velocity);

}  // namespace abtrain::methods
