// QCMD and QRDA Adagrad (Xu et al., arXiv 2208.05631; the steps are those of Duchi et al. 2011).
// ops/adagrad.h has the formulas. The gradient is the mean over the workers as the reducer
// (compress/) estimates it. The l1 term applies to the weights; parameters that do not decay
// (biases, norms) have no l1 term unless `decay_all` is set. These optimizers have no weight decay.
#include "ops/adagrad.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/tensor.h>

#include "optim/optimizer_kind.h"

namespace abtrain::optim {
namespace {

class Adagrad : public Optimizer {
 public:
  // Moments: the sums of squared gradients; with dual averaging also the sums of gradients and,
  // unless `center` is zero, the initial weights.
  explicit Adagrad(const OptimizerOptions& options)
      : Optimizer(
            options, std::vector(
                         !kind_of(options).dual_averaging ? 1
                         : options.center == Center::Init ? 3
                                                          : 2,
                         MomentKind::Other)) {}

  void step(ParameterBlock& block, const Rates& rates, const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    if (block.numel() == 0) {
      return;
    }
    at::_foreach_add_(block.steps(), 1);
    if (!l1_.defined()) {
      lay_out(block);
    }
    const auto moment = [&](int which) {
      return block.moments().narrow(0, which * block.numel(), block.numel());
    };
    ops::adagrad_step(
        {block.values(), block.gradients(), moment(0), moments() > 1 ? moment(1) : at::Tensor(),
         moments() > 2 ? moment(2) : at::Tensor()},
        blocks_, l1_, rates.dense(), block.steps()[0], divisor, options_.delta);
  }

 private:
  // Called once: all blocks that one optimizer gets have the same layout, because its weights are
  // never factored (OptimizerKind::owns_weights).
  void lay_out(const ParameterBlock& block) {
    std::vector<ops::CodeBlocks::Tensor> tensors;
    std::vector<float> l1;
    for (std::size_t i = 0; i < block.parameters().size(); ++i) {
      tensors.push_back({block.offset(i), block.offset(i + 1) - block.offset(i)});
      const bool sparse = block.parameters()[i].decays || options_.decay_all;
      l1.push_back(sparse ? static_cast<float>(options_.l1) : 0.0f);
    }
    blocks_ = ops::CodeBlocks(tensors);
    l1_ = at::tensor(l1).to(block.steps()[0].device());
  }

  ops::CodeBlocks blocks_;
  at::Tensor l1_;  // one per parameter
};

}  // namespace

const OptimizerKind kQcmdAdagrad{
    .name = "qcmd-adagrad",
    .make = make<Adagrad>,
    .penalty = Penalty::Magnitudes,
    .owns_weights = true};

const OptimizerKind kQrdaAdagrad{
    .name = "qrda-adagrad",
    .make = make<Adagrad>,
    .penalty = Penalty::Magnitudes,
    .owns_weights = true,
    .dual_averaging = true};

}  // namespace abtrain::optim
