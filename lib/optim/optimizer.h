// Optimizers: a step is one fused pass over a block of parameters.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "optim/optim_options.h"
#include "optim/parameter_block.h"

namespace abtrain::optim {

// The learning rates of a step, as scalars in device memory, so that a captured step
// (device/graph.h) uses the current rates whenever it is replayed. They are fp64 on the CPU and
// fp32 on a GPU, as its kernels expect. Factors of weights have a rate of their own.
class Rates {
 public:
  explicit Rates(c10::Device device);
  // Sets the rate of dense parameters to `lr` and the rate of factors to `factor_scale * lr`.
  // Queued on this thread's stream; the host does not wait.
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

// The contents of a flat buffer of optimizer state (a moment).
enum class MomentKind {
  Gradients,         // a weighted sum of gradients
  SquaredGradients,  // a weighted sum of squared gradients
  Other,
};

class Optimizer {
 public:
  // `moments`: the contents of each moment buffer, as far as it belongs to factors.
  Optimizer(const OptimizerOptions& options, std::vector<MomentKind> moments)
      : options_(options), moments_(std::move(moments)) {}
  virtual ~Optimizer() = default;
  int moments() const {
    return static_cast<int>(moments_.size());
  }
  MomentKind moment_kind(int k) const {
    return moments_[static_cast<std::size_t>(k)];
  }
  // Sets the dtype of the operands of matrix products in all later steps: kFloat or kBFloat16.
  // Optimizers without such products ignore it.
  virtual void compute_in(at::ScalarType) {}
  // Takes one step from block.gradients(). `divisor`, a scalar tensor, divides the gradients in the
  // same pass, so that clipping needs no pass of its own; undefined means 1. Afterwards the
  // gradients' values are unspecified. The host does not wait.
  virtual void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) = 0;

 protected:
  const OptimizerOptions options_;

 private:
  std::vector<MomentKind> moments_;
};

// Makes the optimizer named options.name (optim/optimizer_kind.h). Throws Error(Config) for an
// unknown name.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

// Global-norm clipping by the rule of torch.nn.utils.clip_grad_norm_.
struct Clip {
  at::Tensor norm;     // of all gradients; a scalar on their device
  at::Tensor divisor;  // max(1, (norm + 1e-6) / limit); undefined: 1
};
// If `limit` is 0, nothing is clipped and the divisor is undefined. Otherwise, on the CPU, where
// the host knows the norm at once, the divisor is defined only if the norm exceeds `limit`. On a
// GPU, or if `fixed` is set, it is always defined, because a captured step must run the same
// operators whatever the norm.
Clip clip(const at::Tensor& flat_gradients, double limit, bool fixed = false);

}  // namespace abtrain::optim
