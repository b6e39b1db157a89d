#include "optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>

#include "base/error.h"

namespace abtrain::optim {

namespace {

using Tensors = std::vector<at::Tensor>;

// The parameters of a block that share one rate and one decay.
struct Slice {
  std::vector<std::size_t> members;
  bool decays;
  bool is_factor;
};

std::vector<Slice> slices_of(const ParameterBlock& block, bool decay_all) {
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < block.parameters().size(); ++i) {
    const ParameterRef& p = block.parameters()[i];
    const bool decays = p.decays || decay_all;
    auto slice = slices.begin();
    while (slice != slices.end() &&
           (slice->decays != decays || slice->is_factor != p.is_factor)) {
      ++slice;
    }
    if (slice == slices.end()) {
      slices.push_back({{}, decays, p.is_factor});
      slice = slices.end() - 1;
    }
    slice->members.push_back(i);
  }
  return slices;
}

Tensors pick(const Tensors& all, const std::vector<std::size_t>& members) {
  Tensors result;
  result.reserve(members.size());
  for (const std::size_t i : members) {
    result.push_back(all[i]);
  }
  return result;
}

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
      double lr,
      double factor_scale,
      const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : slices_of(block, options_.decay_all)) {
      const Tensors steps = pick(block.steps(), slice.members);
      at::_foreach_add_(steps, 1);
      at::_fused_adamw_(
          pick(block.value_views(), slice.members),
          pick(block.gradient_views(), slice.members),
          pick(block.moment_views(0), slice.members),
          pick(block.moment_views(1), slice.members),
          {},
          steps,
          slice.is_factor ? lr * factor_scale : lr,
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
      double lr,
      double factor_scale,
      const at::Tensor& divisor) override {
    const at::NoGradGuard no_grad;
    for (const Slice& slice : slices_of(block, options_.decay_all)) {
      // A zero momentum buffer gives PyTorch's first step: buf = gradient.
      at::_foreach_add_(pick(block.steps(), slice.members), 1);
      const Tensors buffers = moments() > 0
          ? pick(block.moment_views(0), slice.members)
          : Tensors{};
      at::_fused_sgd_(
          pick(block.value_views(), slice.members),
          pick(block.gradient_views(), slice.members),
          buffers,
          slice.decays ? options_.weight_decay : 0.0,
          options_.momentum,
          slice.is_factor ? lr * factor_scale : lr,
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

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  if (options.name == "adamw") {
    return std::make_unique<AdamW>(options);
  }
  if (options.name == "sgd") {
    return std::make_unique<Sgd>(options);
  }
  throw Error(
      ErrorKind::Config,
      str("optimizer.name: expected sgd or adamw; got '", options.name, "'"));
}

namespace {

// In rows first: one long sum in fp32 loses digits (1.6e-3 at 30 million
// numbers), a sum of sums does not.
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

Clip clip(const at::Tensor& flat_gradients, double limit) {
  const at::NoGradGuard no_grad;
  if (flat_gradients.numel() == 0) {
    return {at::zeros({}, flat_gradients.options()), {}};
  }
  Clip result{norm_of(flat_gradients), {}};
  const bool known = flat_gradients.is_cpu();
  if (limit > 0 && (!known || result.norm.item<double>() > limit)) {
    result.divisor = result.norm.add(1e-6).div_(limit).clamp_min_(1);
  }
  return result;
}

}  // namespace abtrain::optim
