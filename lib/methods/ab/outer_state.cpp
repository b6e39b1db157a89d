#include "methods/ab/outer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include "compress/schemes.h"

namespace abtrain::methods {

OuterState::OuterState(const MethodOptions& options)
    : step_(outer_step_of(options)),
      in_place_(options.trains == Trains::Both || keeps_bases(options)),
      one_role_(has_one_role(options)) {
  const compress::ReducerOptions& wire = options.outer.wire;
  if (!wire.name) {
    dtype_ = wire.dtype.value_or(at::kFloat);
    return;
  }
  dtype_ = compress::plain_dtype(wire);
  format_ = compress::wire_format(wire);
  keeps_residual_ = format_ && compress::has_error_feedback(wire);
  decay_ = wire.error_decay;
}

FlatFactors OuterState::send(
    const at::Tensor& residual, at::Tensor& change, FactorExchange& exchange, std::int64_t a,
    std::int64_t b, comm::Purpose purpose) const {
  add_residual(residual, change);
  const FlatFactors mean = exchange.mean_changes(change, a, b, *format_, purpose);
  if (!keeps_residual_) {
    change.reset();
  }
  return mean;
}

void OuterState::add_residual(const at::Tensor& residual, at::Tensor change) const {
  if (residual.defined()) {
    change.add_(residual.to(change.device()), decay_);
  }
}

void OuterState::step(FlatFactors& change) {
  if (step_.rule == OuterRule::Average) {
    return;
  }
  const at::NoGradGuard no_grad;
  const auto apply = [&](at::Tensor& mean, at::Tensor& velocity) {
    if (!mean.defined()) {
      return;
    }
    if (step_.has_velocity()) {
      velocity = velocity.defined() ? velocity.to(mean.device()) : at::zeros_like(mean);
    }
    at::Tensor x = at::zeros_like(mean);
    step_(x, mean, velocity);
    mean = x;
  };
  apply(change.a, velocity_.a);
  apply(change.b, velocity_.b);
}

void OuterState::change_basis(
    const std::vector<nn::Factor>& own, const std::vector<AbLayer>& layers) {
  const at::NoGradGuard no_grad;
  if (factor_residual.defined()) {
    std::vector<at::Tensor> carried;
    std::int64_t from = 0;
    for (const nn::Factor which : own) {
      const std::int64_t numel = factor_numel(layers, which, &AbLayer::old_rank);
      carried.push_back(carry_changes(factor_residual.narrow(0, from, numel), which, layers));
      from += numel;
    }
    factor_residual = at::cat(carried);
  }
  const auto carry = [&](at::Tensor& flat, nn::Factor which) {
    if (flat.defined()) {
      flat = carry_changes(flat, which, layers);
    }
  };
  carry(velocity_.a, nn::Factor::A);
  carry(velocity_.b, nn::Factor::B);
}

void OuterState::clear() {
  factor_residual = dense_residual = velocity_.a = velocity_.b = at::Tensor();
}

void OuterState::archive(
    state::Archive& archive, std::int64_t own, std::int64_t dense, std::int64_t a, std::int64_t b) {
  const state::Owner owner = state::Owner::Replicas;
  if (archive.is_loading()) {
    clear();
  }
  if (keeps_residual_) {
    archive.tensor("outer.residual", factor_residual, owner, own);
    if (in_place_) {
      archive.tensor("outer.dense_residual", dense_residual, owner, dense);
    }
  }
  if (step_.has_velocity()) {
    archive.tensor("outer.velocity_a", velocity_.a, owner, a);
    archive.tensor("outer.velocity_b", velocity_.b, owner, b);
  }
}

}  // namespace abtrain::methods
