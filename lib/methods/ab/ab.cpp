#include "methods/ab/ab.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "compress/schemes.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

std::vector<nn::Factor> trained_factors(
    const MethodOptions& options, comm::Role role, bool swapped = false) {
  if (options.trains == Trains::Both) {
    return {nn::Factor::A, nn::Factor::B};
  }
  return {(role == comm::Role::A) != swapped ? nn::Factor::A : nn::Factor::B};
}

}  // namespace

AbTraining::AbTraining(const MethodContext& context)
    : Method(context, context.options.full_phase.reducer.or_else(context.reducer)),
      groups_(make_groups(context.options, context.world.size())),
      own_(trained_factors(context.options, groups_.role_of(context.world.rank()))),
      group_(context.world.split(groups_.group_of(context.world.rank()))),
      exchange_(context.world, groups_, context.batches),
      outer_(context.options),
      ramp_(make_ramp(
          context.options, make_phase_plan(context.options, context.length), context.length)),
      group_reduction_(context.reducer, context.seed, context.observer) {
  for (const nn::NamedWeight& w : factorable_weights(context.model, context.options)) {
    factorable_.emplace_back(w);
  }
}

Stage AbTraining::now() {
  const bool is_ab = phase_ == Phase::Ab;
  comm::Communicator* replicas = is_ab ? group_.get() : &context_.world;
  return {
      .phase = phase_,
      .replicas = replicas,
      .gradient_group = replicas,
      .sends_early = replicas->size() > 1,
      .factor_lr_scale = context_.options.factor_lr_scale};
}

void AbTraining::start() {
  if (!adapts(context_.options)) {  // the dense weights of adapters are not trained
    build_blocks();
  }
  if (ending_after(0).after != Event::None) {  // there is no warm-up
    decompose(0);
    switched_at_ = 0;
  }
}

void AbTraining::replanned(const RunLength& length) {
  ramp_ = make_ramp(planned_, make_phase_plan(planned_, length), length);
}

double AbTraining::learning_rate(std::int64_t t) {
  const double scheduled = context_.schedule.at(t);
  if (switched_at_ < 0) {
    return scheduled;
  }
  return ramped_rate(ramp_, t - switched_at_ + 1, scheduled, context_.schedule.at(switched_at_));
}

GradientReduction* AbTraining::reduction() {
  return phase_ == Phase::Ab ? &group_reduction_ : &reduction_;
}

void AbTraining::bind_reductions() {
  group_reduction_.release();
  reduction_.release();
  if (GradientReduction* used = reduction()) {
    used->bind(trained_, *now().replicas);
  }
}

compress::Costs AbTraining::costs() {
  return group_reduction_.costs() + reduction_.costs();
}

void AbTraining::after_step(std::int64_t t) {
  const Event event = ending_after(t).after;
  switch (event) {
    case Event::Decompose:
      decompose(t);
      break;
    case Event::Synchronize:
      synchronize(t, event);
      enter_full();
      break;
    case Event::SynchronizeAndDecompose:
      synchronize(t, event);
      decompose(t);
      break;
    case Event::AverageFactors:
      average_factors(t);
      return;  // the learning rate needs no ramp
    default:
      return;
  }
  switched_at_ = t;
}

void AbTraining::finish(std::int64_t t) {
  if (phase_ == Phase::Full) {
    decompose(t);
    return;
  }
  if (switched_at_ == t || averaged_at_ == t) {
    return;  // the last step ended in a synchronization or decomposition
  }
  synchronize(t, Event::None);
  if (context_.options.sync == SyncMode::Full ||
      !std::ranges::all_of(factorable_, &AbLayer::is_product)) {
    decompose(t);
    return;
  }
  keep_products();
}

void AbTraining::keep_products() {
  for (AbLayer& layer : factorable_) {
    layer.weight().set_factors(std::exchange(layer.product, {}));
  }
  build_blocks();
}

void AbTraining::merge_into(nn::Model& target) {
  Method::merge_into(target);
  if (phase_ == Phase::Full) {
    return;
  }
  const at::NoGradGuard no_grad;
  set_products(merged_changes(comm::Purpose::Metrics, false).mean);
  for (AbLayer& layer : factorable_) {
    if (layer.is_product()) {
      std::ranges::find(target.weights(), layer.named.name, &nn::NamedWeight::name)
          ->weight->set_factors(std::exchange(layer.product, {}));
    }
  }
  set_mean_dense(dense_part(trained_.values()), context_.world, target, world_weight());
}

std::vector<LayerRank> AbTraining::layers() const {
  return decomposed_before_ ? mapped(factorable_, &AbLayer::cut) : std::vector<LayerRank>();
}

std::vector<at::Tensor> AbTraining::replicated_state() {
  std::vector<at::Tensor> state = {trained_.values(), trained_.moments()};
  if (frozen_.numel() > 0) {
    state.push_back(frozen_.values());
  }
  return state;
}

std::int64_t AbTraining::numel_of(nn::Factor which) const {
  return factor_numel(factorable_, which, &AbLayer::rank);
}

FlatFactors AbTraining::own_factors(const at::Tensor& flat) const {
  const std::int64_t a = trains(nn::Factor::A) ? numel_of(nn::Factor::A) : 0;
  return {
      trains(nn::Factor::A) ? flat.narrow(0, 0, a) : at::Tensor(),
      trains(nn::Factor::B) ? flat.narrow(0, a, flat.numel() - a) : at::Tensor()};
}

at::Tensor AbTraining::own_change() {
  return trained_.values().narrow(0, 0, own_numel_) - own_start_;
}

at::Tensor AbTraining::dense_part(const at::Tensor& flat, int k) {
  const std::int64_t numel = trained_.numel();
  return flat.narrow(0, k * numel + own_numel_, numel - own_numel_);
}

std::vector<at::Tensor> AbTraining::dense_parts() {
  std::vector<at::Tensor> parts = {dense_part(trained_.values())};
  for (int k = 0; k < trained_.moment_count(); ++k) {
    parts.push_back(dense_part(trained_.moments(), k));
  }
  return parts;
}

AbTraining::MergedChanges AbTraining::merged_changes(comm::Purpose purpose, bool codes) {
  at::Tensor own = own_change();
  if (purpose == comm::Purpose::Sync && !codes) {
    outer_.add_residual(outer_.factor_residual, own);
  }
  if (!groups_differ(context_.options, groups_)) {
    return {own_factors(own), {}};
  }
  // If groups train both factors, the exchange sees them as one factor of role B. With swapped
  // roles, the A-groups train B.
  const bool both = own_.size() == 2;
  const bool swapped = are_swapped();
  const std::int64_t a = both ? 0 : numel_of(swapped ? nn::Factor::B : nn::Factor::A);
  const std::int64_t b = both ? own.numel() : numel_of(swapped ? nn::Factor::A : nn::Factor::B);
  FlatFactors mean;
  if (codes && outer_.format()) {
    mean = outer_.send(outer_.factor_residual, own, exchange_, a, b, purpose);
  } else {
    mean = exchange_.mean_changes(own, a, b, outer_.dtype(), purpose);
    own.reset();
  }
  return {both ? own_factors(mean.b) : swapped ? FlatFactors{mean.b, mean.a} : mean, own};
}

bool AbTraining::are_swapped() const {
  return own_ != trained_factors(context_.options, groups_.role_of(context_.world.rank()));
}

std::vector<nn::Factor> AbTraining::role_after(std::int64_t t) const {
  const std::int64_t swaps =
      context_.options.roles == Roles::Alternate ? timeline_.count(Event::AverageFactors, t) : 0;
  return trained_factors(context_.options, groups_.role_of(context_.world.rank()), swaps % 2 == 1);
}

FlatFactors AbTraining::start_factors() {
  FlatFactors start = own_factors(own_start_);
  for (at::Tensor* factor : {&start.a, &start.b}) {
    if (!factor->defined()) {
      *factor = frozen_.values();
    }
  }
  return start;
}

void AbTraining::set_products(const FlatFactors& mean_change) {
  const FlatFactors start = start_factors();
  std::int64_t a = 0;
  std::int64_t b = 0;
  for (AbLayer& layer : factorable_) {
    const std::int64_t rank = layer.rank();
    if (rank > 0) {
      const auto of_layer = [&](const FlatFactors& flat) -> linalg::LowRankPair {
        return {
            layer.matrix_at(flat.a, a, nn::Factor::A, rank),
            layer.matrix_at(flat.b, b, nn::Factor::B, rank)};
      };
      layer.product = merge_factors(context_.options.sync, of_layer(start), of_layer(mean_change));
    }
    a += layer.weight().factor_numel(nn::Factor::A, rank);
    b += layer.weight().factor_numel(nn::Factor::B, rank);
  }
}

}  // namespace abtrain::methods
