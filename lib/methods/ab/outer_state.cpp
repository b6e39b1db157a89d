#include "methods/ab/outer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "compress/schemes.h"
#include "compress/wire.h"

namespace abtrain::methods {

namespace {

// x divided by the squared norms of the columns of a matrix; 0 where such a
// norm is 0 within rounding, because nothing can be expressed there.
at::Tensor over_squares(const at::Tensor& x, const at::Tensor& squares) {
  const at::Tensor least = squares.max() * 1e-7;
  return at::where(squares > least, x / squares, at::zeros_like(x));
}

// The matrices M of dA M and M dB.
at::Tensor map_of_a(const BasisChange& layer) {
  // In SyncMode::Full the merged B begins with the one that dA belongs to.
  const at::Tensor before = layer.before.b.narrow(0, 0, layer.old_rank);
  const at::Tensor after = layer.after.b;  // new_rank x n
  return over_squares(
      at::matmul(before, after.t()), after.square().sum(1).unsqueeze(0));
}
at::Tensor map_of_b(const BasisChange& layer) {
  // The merged A ends with the one that dB belongs to.
  const at::Tensor before = layer.before.a.narrow(
      1, layer.before.a.size(1) - layer.old_rank, layer.old_rank);
  const at::Tensor after = layer.after.a;  // m x new_rank
  return over_squares(
      at::matmul(after.t(), before), after.square().sum(0).unsqueeze(1));
}

at::Tensor carried(
    const at::Tensor& flat,
    nn::Factor which,
    const std::vector<BasisChange>& layers) {
  std::int64_t numel = 0;
  for (const BasisChange& layer : layers) {
    numel += layer.weight.factor_numel(which, layer.new_rank);
  }
  at::Tensor result = at::zeros({numel}, flat.options());
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (const BasisChange& layer : layers) {
    const nn::Weight& w = layer.weight;
    if (layer.old_rank > 0 && layer.new_rank > 0) {
      const at::Tensor old = w.to_matrix(
          which,
          nn::view_at(flat, from, w.stored_sizes(which, layer.old_rank)));
      const at::Tensor changed = which == nn::Factor::A
                                     ? at::matmul(old, map_of_a(layer))
                                     : at::matmul(map_of_b(layer), old);
      nn::view_at(result, to, w.stored_sizes(which, layer.new_rank))
          .copy_(w.to_stored(which, changed));
    }
    from += w.factor_numel(which, layer.old_rank);
    to += w.factor_numel(which, layer.new_rank);
  }
  return result;
}

}  // namespace

OuterState::OuterState(const MethodOptions& options)
    : step_(outer_step_of(options)) {
  const compress::ReducerOptions plain;
  const compress::ReducerOptions& wire = outer_wire(options, plain);
  dtype_ = &wire == &plain ? options.outer.wire.dtype.value_or(at::kFloat)
                           : compress::plain_dtype(wire);
  format_ = compress::wire_format(wire);
  keeps_residual_ = format_ && compress::has_error_feedback(wire);
  decay_ = wire.error_decay;
}

void OuterState::add_residual(at::Tensor change) const {
  if (residual_.defined()) {
    change.add_(residual_.to(change.device()), decay_);
  }
}

void OuterState::keep(at::Tensor residual) {
  if (keeps_residual_) {
    residual_ = std::move(residual);
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
      velocity = velocity.defined() ? velocity.to(mean.device())
                                    : at::zeros_like(mean);
    }
    at::Tensor x = at::zeros_like(mean);
    step_(x, mean, velocity);
    mean = x;
  };
  apply(change.a, velocity_a_);
  apply(change.b, velocity_b_);
}

void OuterState::change_basis(
    nn::Factor own,
    const std::vector<BasisChange>& layers) {
  const at::NoGradGuard no_grad;
  const auto carry = [&](at::Tensor& flat, nn::Factor which) {
    if (flat.defined()) {
      flat = carried(flat, which, layers);
    }
  };
  carry(residual_, own);
  carry(velocity_a_, nn::Factor::A);
  carry(velocity_b_, nn::Factor::B);
}

void OuterState::clear() {
  residual_ = velocity_a_ = velocity_b_ = at::Tensor();
}

void OuterState::archive(
    state::Archive& archive,
    std::int64_t own,
    std::int64_t a,
    std::int64_t b) {
  const state::Owner owner = state::Owner::Replicas;
  if (archive.is_loading()) {
    clear();
  }
  if (keeps_residual_) {
    archive.tensor("outer.residual", residual_, owner, own);
  }
  if (step_.has_velocity()) {
    archive.tensor("outer.velocity_a", velocity_a_, owner, a);
    archive.tensor("outer.velocity_b", velocity_b_, owner, b);
  }
}

}  // namespace abtrain::methods
