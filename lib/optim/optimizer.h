// Optimizers: one fused pass over a block of parameters.
#pragma once

#include <memory>
#include <string>

#include "optim/optim_options.h"
#include "optim/parameter_block.h"

namespace abtrain::optim {

// The rates of a step, where a device reads them: numbers in its memory, so that
// a captured step (device/graph.h) goes with each step's own. On the CPU they
// are the doubles themselves, on a GPU fp32 as its kernels want them.
class Rates {
 public:
  explicit Rates(c10::Device device);
  // Of parameters `lr`, of factors `factor_scale` times that. Queued on this
  // thread's stream: nothing waits.
  void set(double lr, double factor_scale);
  const at::Tensor& of(const Slice& slice) const {
    return slice.is_factor ? factors_ : dense_;
  }
  const at::Tensor& dense() const {
    return dense_;
  }

 private:
  at::Tensor dense_, factors_;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Flat buffers of state that it wants in a block.
  virtual int moments() const = 0;
  // One step from block.gradients(). `divisor` (a defined scalar tensor, or
  // undefined for 1) divides the gradients on the way: clipping without a pass
  // of its own. The host waits for nothing.
  virtual void step(
      ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) = 0;
};

// sgd: PyTorch's SGD with momentum and Nesterov, decay added to the gradient.
// adamw: Loshchilov and Hutter 2019, decoupled decay.
// qcmd-adagrad, qrda-adagrad: optim/adagrad.h.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

// Global-norm clipping, torch.nn.utils.clip_grad_norm_'s rule.
struct Clip {
  at::Tensor norm;     // of all gradients, scalar on their device
  at::Tensor divisor;  // max(1, (norm + 1e-6) / limit); undefined for 1
};
// Where the host knows the norm at once (on the CPU), the divisor is undefined
// unless it is above 1; on a GPU, and where the same operators must follow
// whatever the norm (`fixed`: a captured step), it is always defined.
Clip clip(const at::Tensor& flat_gradients, double limit, bool fixed = false);

}  // namespace abtrain::optim
