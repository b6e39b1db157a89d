// Optimizers: a step is one fused pass over a block of parameters.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "optim/optim_options.h"
#include "optim/parameter_block.h"

namespace abtrain::optim {

// The learning rates of a step, where a device reads them: scalars in its
// memory, so that a captured step (device/graph.h) uses the current rates
// whenever it is replayed. On the CPU they are fp64, on a GPU fp32, as its
// kernels expect.
class Rates {
 public:
  explicit Rates(c10::Device device);
  // Sets the rate of dense parameters to `lr` and that of factors to
  // `factor_scale * lr`. Queued on this thread's stream; nothing waits.
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

// What a flat state buffer holds.
enum class MomentKind {
  Gradients,         // a weighted sum of gradients
  SquaredGradients,  // the same of their squares
  Other,
};

class Optimizer {
 public:
  // moments: what each flat state buffer of a block holds of a factor.
  Optimizer(const OptimizerOptions& options, std::vector<MomentKind> moments)
      : options_(options), moments_(std::move(moments)) {}
  virtual ~Optimizer() = default;
  int moments() const {
    return static_cast<int>(moments_.size());
  }
  MomentKind moment_kind(int k) const {
    return moments_[static_cast<std::size_t>(k)];
  }
  // What the products of all later steps take their factors in, where an optimizer has any: kFloat
  // or kBFloat16.
  virtual void compute_in(at::ScalarType) {}
  // One step from block.gradients(). `divisor` (a defined scalar tensor, or
  // undefined for 1) divides the gradients in the same pass, so that clipping
  // needs none of its own. What the gradients hold afterwards is unspecified.
  // The host does not wait.
  virtual void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) = 0;

 protected:
  const OptimizerOptions options_;

 private:
  std::vector<MomentKind> moments_;
};

// The optimizer of this name (optim/optimizer_kind.h). Throws Error(Config) for
// an unknown name.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

// Global-norm clipping by the rule of torch.nn.utils.clip_grad_norm_.
struct Clip {
  at::Tensor norm;     // of all gradients; a scalar on their device
  at::Tensor divisor;  // max(1, (norm + 1e-6) / limit); undefined: 1
};
// If `limit` is 0, nothing is clipped and the divisor is undefined. Otherwise,
// on the CPU, where the host knows the norm at once, the divisor is defined
// only if the norm is above `limit`. On a GPU, and if `fixed` is set because a
// captured step must run the same operators whatever the norm, it is always
// defined.
Clip clip(const at::Tensor& flat_gradients, double limit, bool fixed = false);

}  // namespace abtrain::optim
