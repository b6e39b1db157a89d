// The outer step of methods with local steps: SGD with Nesterov momentum as in
// torch.optim.SGD, on the outer gradient g = x - mean of the workers'
// parameters. Douillard et al. 2023, arXiv 2311.08105, algorithm 1:
//   v <- momentum v + g;  x <- x - lr (g + momentum v)
// With lr 1 and momentum 0, x becomes the mean itself.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::methods {

struct OuterSgd {
  double lr = 1;
  double momentum = 0;
};

// All tensors are flat fp32 of one length. `x`: the parameters that the workers
// started from; becomes those that they continue from. `change`: mean of (a
// worker's parameters - x); overwritten. `velocity`: zero before the first
// step; not used without momentum.
void outer_step(
    const OuterSgd& sgd,
    at::Tensor x,
    at::Tensor change,
    at::Tensor velocity);

}  // namespace abtrain::methods
