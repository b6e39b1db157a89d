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

// Global-norm clipping, torch.nn.utils.clip_grad_norm_'s rule.
struct Clip {
  at::Tensor norm;     // of all gradients, scalar on their device
  at::Tensor divisor;  // max(1, (norm + 1e-6) / limit); undefined for 1
};
// Never makes the host wait for a GPU: there the divisor is always defined.
Clip clip(const at::Tensor& flat_gradients, double limit);

}  // namespace abtrain::optim
