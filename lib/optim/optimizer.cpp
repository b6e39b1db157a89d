#include "optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <optional>

#include "base/error.h"
#include "optim/adagrad.h"

namespace abtrain::optim {

namespace {

std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

class AdamW : public Optimizer {
 public:
  explicit AdamW(const OptimizerOptions& options) : options_(options) {}
  int moments() const override {
    return 2;
  }
  void step(
      ParameterBlock& block,
      const Rates& rates,
      const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : block.slices(options_.decay_all)) {
      at::_foreach_add_(slice.steps, 1);
      at::_fused_adamw_(
          slice.values,
          slice.gradients,
          slice.moments[0],
          slice.moments[1],
          {},
          slice.steps,
          rates.of(slice),
          options_.beta1,
          options_.beta2,
          slice.decays ? options_.weight_decay : 0.0,
          options_.eps,
          /*amsgrad=*/false,
          /*maximize=*/false,
          optional(divisor),
          std::nullopt);
    }
  }

 private:
  OptimizerOptions options_;
};

class Sgd : public Optimizer {
 public:
  explicit Sgd(const OptimizerOptions& options) : options_(options) {}
  int moments() const override {
    return options_.momentum > 0 ? 1 : 0;
  }
  void step(
      ParameterBlock& block,
      const Rates& rates,
      const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : block.slices(options_.decay_all)) {
      // A zero momentum buffer gives PyTorch's first step: buf = gradient.
      at::_foreach_add_(slice.steps, 1);
      at::_fused_sgd_(
          slice.values,
          slice.gradients,
          moments() > 0 ? at::TensorList(slice.moments[0]) : at::TensorList(),
          slice.decays ? options_.weight_decay : 0.0,
          options_.momentum,
          rates.of(slice),
          /*dampening=*/0.0,
          options_.nesterov,
          /*maximize=*/false,
          /*is_first_step=*/false,
          optional(divisor),
          std::nullopt);
    }
  }

 private:
  OptimizerOptions options_;
};

}  // namespace

Rates::Rates(c10::Device device)
    : dense_(at::zeros(
          {},
          at::TensorOptions(device).dtype(
              device.is_cpu() ? at::kDouble : at::kFloat))),
      factors_(at::zeros_like(dense_)) {}

void Rates::set(double lr, double factor_scale) {
  dense_.fill_(lr);
  factors_.fill_(lr * factor_scale);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  if (options.name == "adamw") {
    return std::make_unique<AdamW>(options);
  }
  if (options.name == "sgd") {
    return std::make_unique<Sgd>(options);
  }
  if (is_adagrad(options)) {
    return make_adagrad(options);
  }
  throw Error(
      ErrorKind::Config,
      str("optimizer.name: expected sgd, adamw, qcmd-adagrad or qrda-adagrad; "
          "got '",
          options.name,
          "'"));
}

namespace {

// Rows first: one long fp32 sum loses digits (1.6e-3 at 30 million numbers), a
// sum of sums does not.
at::Tensor norm_of(const at::Tensor& flat) {
  constexpr std::int64_t kRow = 4096;
  const std::int64_t rows = flat.numel() / kRow;
  const at::Tensor head = at::linalg_vector_norm(
      flat.narrow(0, 0, rows * kRow).view({rows, kRow}), 2, at::IntArrayRef{1});
  const at::Tensor tail = at::linalg_vector_norm(
      flat.narrow(0, rows * kRow, flat.numel() - rows * kRow));
  return at::linalg_vector_norm(at::cat({head, tail.view({1})}));
}

}  // namespace

Clip clip(const at::Tensor& flat_gradients, double limit, bool fixed) {
  const at::NoGradGuard no_grad;
  if (flat_gradients.numel() == 0) {
    return {at::zeros({}, flat_gradients.options()), {}};
  }
  Clip result{norm_of(flat_gradients), {}};
  const bool known = flat_gradients.is_cpu() && !fixed;
  if (limit > 0 && (!known || result.norm.item<double>() > limit)) {
    result.divisor = result.norm.add(1e-6).div_(limit).clamp_min_(1);
  }
  return result;
}

}  // namespace abtrain::optim
