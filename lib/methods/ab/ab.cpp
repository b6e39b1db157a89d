#include "methods/ab/ab.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "compress/schemes.h"
#include "methods/average.h"

namespace abtrain::methods {

AbTraining::AbTraining(const MethodContext& context)
    : Method(context),
      groups_(make_groups(context.options, context.world.size())),
      role_(groups_.role_of(context.world.rank())),
      group_(context.world.split(
          groups_.group_of(context.world.rank()),
          context.world.rank())),
      exchange_(context.world, groups_),
      outer_(context.options),
      full_wire_(compress::plain_dtype(
          context.options.full_phase.reducer_of(context.reducer))),
      factorable_(factorable_weights(context.model, context.options)),
      ramp_(make_ramp(
          context.options,
          make_phase_plan(context.options, context.length),
          context.length)),
      group_reduction_(context.reducer, context.seed, context.observer),
      full_reduction_(
          context.options.full_phase.reducer_of(context.reducer),
          context.seed,
          context.observer) {}

Stage AbTraining::now() {
  Stage stage;
  stage.phase = phase_;
  stage.replicas = phase_ == Phase::Ab ? group_.get() : &context_.world;
  stage.gradient_group = reduction() == nullptr ? nullptr : stage.replicas;
  stage.sends_early =
      stage.gradient_group != nullptr && stage.gradient_group->size() > 1;
  stage.one_state = phase_ == Phase::Ab || !local_steps();
  stage.factor_lr_scale = context_.options.factor_lr_scale;
  return stage;
}

void AbTraining::start() {
  build_blocks();
  if (ending_after(0) != nullptr) {  // there is no warm-up
    decompose(0);
    switched_at_ = 0;
    rate_at_switch_ = context_.schedule.at(0);
  }
}

double AbTraining::learning_rate(std::int64_t t) {
  const double scheduled = context_.schedule.at(t);
  if (switched_at_ < 0) {
    return scheduled;
  }
  return ramped_rate(ramp_, t - switched_at_ + 1, scheduled, rate_at_switch_);
}

GradientReduction* AbTraining::reduction() {
  if (phase_ == Phase::Ab) {
    return &group_reduction_;
  }
  return local_steps() ? nullptr : &full_reduction_;
}

void AbTraining::bind_reductions() {
  group_reduction_.release();
  full_reduction_.release();
  if (GradientReduction* used = reduction()) {
    used->bind(trained_, *now().replicas);
  }
}

compress::Costs AbTraining::costs() {
  return group_reduction_.costs() + full_reduction_.costs();
}

void AbTraining::after_step(std::int64_t t) {
  const Stretch* ended = ending_after(t);
  const Event event = ended != nullptr ? ended->after : Event::None;
  if (phase_ == Phase::Full && local_steps()) {
    const std::int64_t since = std::max<std::int64_t>(switched_at_, 0);
    if (event == Event::Decompose ||
        (t - since) % context_.options.full_phase.sync_every == 0) {
      average_replicas(t, event == Event::Decompose);
    }
  }
  switch (event) {
    case Event::Decompose:
      decompose(t);
      break;
    case Event::Synchronize:
      enter_full(synchronize(t));
      break;
    case Event::SynchronizeAndDecompose:
      decompose(t, synchronize(t));
      break;
    default:
      return;
  }
  switched_at_ = t;
  rate_at_switch_ = context_.schedule.at(t);
}

void AbTraining::finish(std::int64_t t) {
  if (phase_ == Phase::Full) {
    if (local_steps()) {
      average_replicas(t, true);
    }
    decompose(t);
    return;
  }
  if (switched_at_ == t) {
    return;  // the last step ended in a synchronization or decomposition
  }
  const Products products = synchronize(t, /*last=*/true);
  if (context_.options.sync == SyncMode::Full ||
      std::ranges::any_of(factorable_, [](const nn::NamedWeight& w) {
        return !w.weight->is_factored();
      })) {
    decompose(t, products);
    return;
  }
  for (std::size_t i = 0; i < factorable_.size(); ++i) {
    factorable_[i].weight->set_factors(products[i]);
  }
  build_blocks();
}

void AbTraining::merge_into(nn::Model& target) {
  share_dense(
      context_.model,
      averaged_buffers(context_.model, context_.world, comm::Purpose::Metrics),
      target);
  if (phase_ == Phase::Full && !local_steps()) {
    return;
  }
  if (phase_ == Phase::Ab) {
    const Products products = merged_products(comm::Purpose::Metrics, false);
    for (std::size_t i = 0; i < products.size(); ++i) {
      if (products[i].a.defined()) {
        std::ranges::find(
            target.weights(), factorable_[i].name, &nn::NamedWeight::name)
            ->weight->set_factors(products[i]);
      }
    }
  }
  set_mean_dense(
      trained_.values().narrow(0, own_numel_, trained_.numel() - own_numel_),
      context_.world,
      target);
}

std::vector<at::Tensor> AbTraining::replicated_state() {
  std::vector<at::Tensor> state = {trained_.values()};
  if (phase_ == Phase::Ab || !local_steps()) {
    state.push_back(
        trained_.moments());  // local steps: averaged only at the end
  }
  if (frozen_.numel() > 0) {
    state.push_back(frozen_.values());
  }
  return state;
}

std::int64_t AbTraining::numel_of(nn::Factor which) const {
  std::int64_t numel = 0;
  for (const nn::NamedWeight& w : factorable_) {
    numel += w.weight->factor_numel(which, w.weight->rank());
  }
  return numel;
}

AbTraining::Products AbTraining::merged_products(
    comm::Purpose purpose,
    bool outer) {
  const at::NoGradGuard no_grad;
  std::int64_t a = numel_of(nn::Factor::A);
  std::int64_t b = numel_of(nn::Factor::B);
  const at::Tensor own =
      trained_.values().narrow(0, 0, own_numel_) - own_start_;
  FlatFactors change;
  if (outer && outer_.format()) {
    outer_.add_residual(own);
    change = exchange_.mean_changes(own, a, b, *outer_.format(), purpose);
    outer_.keep(own);
  } else {
    change = exchange_.mean_changes(own, a, b, outer_.dtype(), purpose);
  }
  if (outer) {
    outer_.step(change);
  }
  const bool own_a = role_ == comm::Role::A;
  const at::Tensor& start_a = own_a ? own_start_ : frozen_.values();
  const at::Tensor& start_b = own_a ? frozen_.values() : own_start_;

  Products products;
  a = 0;
  b = 0;
  for (const nn::NamedWeight& named : factorable_) {
    const nn::Weight& w = *named.weight;
    linalg::LowRankPair& product = products.emplace_back();
    if (!w.is_factored()) {
      continue;
    }
    const auto matrix_at =
        [&](const at::Tensor& flat, nn::Factor which, std::int64_t offset) {
          return flat.defined()
                     ? w.to_matrix(
                           which,
                           nn::view_at(
                               flat, offset, w.stored_sizes(which, w.rank())))
                     : at::Tensor();
        };
    product = merge_factors(
        context_.options.sync,
        {matrix_at(start_a, nn::Factor::A, a),
         matrix_at(start_b, nn::Factor::B, b)},
        matrix_at(change.a, nn::Factor::A, a),
        matrix_at(change.b, nn::Factor::B, b));
    a += w.factor_numel(nn::Factor::A, w.rank());
    b += w.factor_numel(nn::Factor::B, w.rank());
  }
  return products;
}

}  // namespace abtrain::methods
