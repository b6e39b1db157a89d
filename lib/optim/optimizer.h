// Optimizers: one fused pass over a block of parameters.
#pragma once

#include <memory>
#include <string>

#include "optim/optim_options.h"
#include "optim/parameter_block.h"

namespace abtrain::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Flat buffers of state that it wants in a block.
  virtual int moments() const = 0;
  // One step from block.gradients(). The rate is `lr`, times `factor_scale` for
  // factors. `divisor` (a defined scalar tensor, or undefined for 1) divides
  // the gradients on the way: clipping without a pass of its own.
  virtual void step(
      ParameterBlock& block,
      double lr,
      double factor_scale,
      const at::Tensor& divisor) = 0;
};

// sgd: PyTorch's SGD with momentum and Nesterov, decay added to the gradient.
// adamw: Loshchilov and Hutter 2019, decoupled decay.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

// Global-norm clipping: max(1, norm / limit) as the divisor of a step, or
// undefined when nothing is to be clipped. `norm` receives the norm (fp64).
at::Tensor clip_divisor(
    const at::Tensor& flat_gradients, double limit, double* norm);

}  // namespace abtrain::optim
