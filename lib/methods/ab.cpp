#include "methods/ab.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

compress::ReducerOptions full_reducer_options(const MethodContext& context) {
  const auto& own = context.options.full_phase.reducer;
  return own.name == "same" ? context.reducer : own;
}

at::ScalarType wire_type(const std::string& dtype) {
  return dtype == "bf16" ? at::kBFloat16 : at::kFloat;
}

nn::Factor factor_of(comm::Role role) {
  return role == comm::Role::A ? nn::Factor::A : nn::Factor::B;
}

}  // namespace

AbTraining::AbTraining(const MethodContext& context)
    : context_(context),
      mode_(sync_mode(context.options.sync)),
      groups_(comm::make_groups(
          context.world.size(),
          context.options.group_size,
          mode_ == SyncMode::OnlyB)),
      role_(groups_.role_of(context.world.rank())),
      group_(context.world.split(
          groups_.group_of(context.world.rank()), context.world.rank())),
      exchange_(context.world, groups_),
      group_reducer_(compress::make_reducer(context.reducer)),
      full_reducer_(compress::make_reducer(full_reducer_options(context))),
      factorable_(nn::factorable_weights(
          context.model, context.options.keep_dense)),
      plan_(make_phase_plan(context.options, context.steps_per_epoch)),
      ramp_(make_ramp(context.options, plan_, context.steps_per_epoch)) {
  check_factorable(factorable_, context.options.rank);
}

std::string AbTraining::role() const {
  return role_ == comm::Role::A ? "A" : "B";
}

void AbTraining::start() {
  build_blocks();
  if (switch_after(plan_, 0, phase_) == Switch::Decompose) {
    decompose(0);
  }
}

double AbTraining::learning_rate(std::int64_t t) {
  const double scheduled = context_.schedule.at(t);
  if (switched_at_ < 0) {
    return scheduled;
  }
  return ramped_rate(ramp_, t - switched_at_ + 1, scheduled, rate_at_switch_);
}

void AbTraining::reduce_gradients(std::int64_t) {
  if (phase_ == Phase::Ab) {
    group_reducer_->reduce(
        trained_.gradients(), *group_, comm::Purpose::Gradient);
  } else if (context_.options.full_phase.sync_every <= 1) {
    full_reducer_->reduce(
        trained_.gradients(), context_.world, comm::Purpose::Gradient);
  }
}

void AbTraining::after_step(std::int64_t t) {
  const Switch now = switch_after(plan_, t, phase_);
  const std::int64_t every = context_.options.full_phase.sync_every;
  if (phase_ == Phase::Full && every > 1) {
    const std::int64_t since = std::max<std::int64_t>(switched_at_, 0);
    if (now == Switch::Decompose || (t - since) % every == 0) {
      average_replicas(now == Switch::Decompose);
    }
  }
  switch (now) {
    case Switch::None:
      return;
    case Switch::Decompose:
      decompose(t);
      break;
    case Switch::Sync:
      enter_full(synchronise(t));
      break;
    case Switch::SyncAndDecompose:
      decompose(synchronise(t), t);
      break;
  }
  switched_at_ = t;
  rate_at_switch_ = context_.schedule.at(t);
}

void AbTraining::finish(std::int64_t t) {
  if (phase_ == Phase::Full) {
    if (context_.options.full_phase.sync_every > 1) {
      average_replicas(true);
    }
    decompose(t);
    return;
  }
  if (switched_at_ == t && t > 0) {
    return;  // the last step ended in a synchronisation or decomposition
  }
  const Products products = synchronise(t);
  if (mode_ == SyncMode::Full) {
    decompose(products, t);
    return;
  }
  const std::vector<nn::NamedWeight> weights = factored();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    nn::Weight& w = *weights[i].weight;
    w.inner.reset();
    w.outer.reset();
    w.factor(nn::Factor::A) = w.to_stored(nn::Factor::A, products[i].a);
    w.factor(nn::Factor::B) = w.to_stored(nn::Factor::B, products[i].b);
  }
  build_blocks();
}

void AbTraining::merge_into(nn::Model& target) {
  share_dense(
      context_.model,
      averaged_buffers(
          context_.model, context_.world, comm::Purpose::Metrics),
      target);
  if (phase_ == Phase::Full) {
    if (context_.options.full_phase.sync_every > 1) {
      share_mean_dense(target);
    }
    return;
  }
  const Products products = merged_products(comm::Purpose::Metrics);
  std::size_t next = 0;
  for (std::size_t i = 0; i < target.weights().size(); ++i) {
    if (!context_.model.weights()[i].weight->is_factored()) {
      continue;
    }
    nn::Weight& w = *target.weights()[i].weight;
    w.dense.reset();
    w.factor(nn::Factor::A) = w.to_stored(nn::Factor::A, products[next].a);
    w.factor(nn::Factor::B) = w.to_stored(nn::Factor::B, products[next].b);
    ++next;
  }
  share_mean_dense(target);
}

void AbTraining::share_mean_dense(nn::Model& target) {
  at::Tensor dense = trained_.values()
                         .narrow(0, own_numel_, trained_.numel() - own_numel_)
                         .clone();
  average({dense}, context_.world, comm::Purpose::Metrics);
  std::int64_t offset = 0;
  for (const optim::ParameterRef& ref : dense_parameters(target)) {
    *ref.tensor = nn::view_at(dense, offset, ref.tensor->sizes().vec());
    offset += ref.tensor->numel();
  }
}

std::vector<at::Tensor> AbTraining::replicated_state() {
  std::vector<at::Tensor> state = {trained_.values(), trained_.moments()};
  if (frozen_.numel() > 0) {
    state.push_back(frozen_.values());
  }
  return state;
}

std::vector<nn::NamedWeight> AbTraining::factored() const {
  std::vector<nn::NamedWeight> result;
  for (const nn::NamedWeight& w : factorable_) {
    if (w.weight->is_factored()) {
      result.push_back(w);
    }
  }
  return result;
}

AbTraining::Products AbTraining::merged_products(comm::Purpose purpose) {
  const at::NoGradGuard no_grad;
  const std::vector<nn::NamedWeight> weights = factored();
  std::int64_t a = 0;
  std::int64_t b = 0;
  for (const nn::NamedWeight& w : weights) {
    const std::int64_t rank = w.weight->rank();
    a += w.weight->factor_numel(nn::Factor::A, rank);
    b += w.weight->factor_numel(nn::Factor::B, rank);
  }
  const FlatFactors change = exchange_.mean_changes(
      trained_.values().narrow(0, 0, own_numel_) - own_start_,
      a,
      b,
      wire_type(context_.options.sync_dtype),
      purpose);
  const bool own_a = role_ == comm::Role::A;
  const at::Tensor& start_a = own_a ? own_start_ : frozen_.values();
  const at::Tensor& start_b = own_a ? frozen_.values() : own_start_;

  Products products;
  a = 0;
  b = 0;
  for (const nn::NamedWeight& named : weights) {
    const nn::Weight& w = *named.weight;
    const auto matrix_at = [&](const at::Tensor& flat,
                               nn::Factor which,
                               std::int64_t offset) {
      return flat.defined()
          ? w.to_matrix(
                which,
                nn::view_at(flat, offset, w.stored_sizes(which, w.rank())))
          : at::Tensor();
    };
    products.push_back(merge_factors(
        mode_,
        {matrix_at(start_a, nn::Factor::A, a),
         matrix_at(start_b, nn::Factor::B, b)},
        matrix_at(change.a, nn::Factor::A, a),
        matrix_at(change.b, nn::Factor::B, b)));
    a += w.factor_numel(nn::Factor::A, w.rank());
    b += w.factor_numel(nn::Factor::B, w.rank());
  }
  return products;
}

void AbTraining::average_dense() {
  const at::NoGradGuard no_grad;
  const std::int64_t dense = trained_.numel() - own_numel_;
  // Values as their change, so that a narrow wire rounds only that.
  at::Tensor values = trained_.values().narrow(0, own_numel_, dense);
  std::vector<at::Tensor> parts = {values - dense_start_};
  for (int k = 0; k < trained_.moment_count(); ++k) {
    parts.push_back(trained_.moments().narrow(
        0, k * trained_.numel() + own_numel_, dense));
  }
  average(
      parts,
      context_.world,
      comm::Purpose::Sync,
      wire_type(context_.options.sync_dtype));
  values.copy_(dense_start_ + parts[0]);
  std::vector<at::Tensor> buffers;
  for (const nn::NamedBuffer& buffer : context_.model.buffers()) {
    buffers.push_back(*buffer.tensor);
  }
  average(buffers, context_.world, comm::Purpose::Sync);
}

void AbTraining::average_replicas(bool with_moments) {
  std::vector<at::Tensor> state = {trained_.values()};
  for (std::size_t i = 0; i < trained_.parameters().size(); ++i) {
    const at::Tensor* tensor = trained_.parameters()[i].tensor;
    const bool stays = std::none_of(
        factorable_.begin(), factorable_.end(), [&](const nn::NamedWeight& w) {
          return &w.weight->dense == tensor;
        });
    for (int k = 0; with_moments && stays && k < trained_.moment_count(); ++k) {
      state.push_back(trained_.moment_views(k)[i]);
    }
  }
  average(
      state,
      context_.world,
      comm::Purpose::Sync,
      wire_type(full_reducer_options(context_).dtype));
}

AbTraining::Products AbTraining::synchronise(std::int64_t t) {
  Stopwatch watch;
  Products products = merged_products(comm::Purpose::Sync);
  average_dense();
  context_.observer.synchronised(
      t, context_.options.sync, watch.seconds());
  return products;
}

void AbTraining::enter_full(const Products& products) {
  const at::NoGradGuard no_grad;
  const std::vector<nn::NamedWeight> weights = factored();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    nn::Weight& w = *weights[i].weight;
    w.inner.reset();
    w.outer.reset();
    w.dense = w.from_matrix(at::matmul(products[i].a, products[i].b));
  }
  phase_ = Phase::Full;
  build_blocks();
}

DecomposeOptions AbTraining::decompose_options() const {
  std::int64_t other = context_.model.dense_parameters();
  for (const nn::NamedWeight& w : factorable_) {
    other -= w.weight->numel();
  }
  return {
      context_.options.rank,
      context_.options.cut_first || decomposed_before_,
      other};
}

void AbTraining::decompose(std::int64_t t) {
  Stopwatch watch;
  // Running statistics differ between workers until here.
  std::vector<at::Tensor> buffers;
  for (const nn::NamedBuffer& buffer : context_.model.buffers()) {
    buffers.push_back(*buffer.tensor);
  }
  average(buffers, context_.world, comm::Purpose::Sync);
  const auto factors = decompose_dense(
      factorable_,
      decompose_options(),
      context_.world,
      [&](double s) { context_.observer.add_svd_seconds(s); });
  enter_ab(factorable_, factors, t, watch.seconds());
}

void AbTraining::decompose(const Products& products, std::int64_t t) {
  Stopwatch watch;
  const std::vector<nn::NamedWeight> weights = factored();
  const auto factors = decompose_products(
      weights,
      products,
      decompose_options(),
      context_.world,
      [&](double s) { context_.observer.add_svd_seconds(s); });
  enter_ab(weights, factors, t, watch.seconds());
}

void AbTraining::enter_ab(
    const std::vector<nn::NamedWeight>& weights,
    const std::vector<LayerFactors>& factors,
    std::int64_t t,
    double seconds) {
  const at::NoGradGuard no_grad;
  const std::vector<LayerRank> before = std::exchange(layers_, {});
  std::size_t next = 0;
  for (const nn::NamedWeight& named : factorable_) {
    nn::Weight& w = *named.weight;
    LayerRank layer{named.layer, w.m(), w.n(), 0, 1.0, 1.0};
    if (next < weights.size() && weights[next].weight == named.weight) {
      const LayerFactors& f = factors[next++];
      layer.rank = f.rank;
      layer.energy = f.energy;
      if (f.rank > 0) {
        w.dense.reset();
        w.factor(nn::Factor::A) = w.to_stored(nn::Factor::A, f.pair.a);
        w.factor(nn::Factor::B) = w.to_stored(nn::Factor::B, f.pair.b);
      }
    }
    layer.first_energy = before.empty()
        ? layer.energy
        : before[layers_.size()].first_energy;
    layers_.push_back(layer);
  }
  phase_ = Phase::Ab;
  decomposed_before_ = true;
  build_blocks();
  context_.observer.decomposed(t, layers_, seconds);
}

void AbTraining::build_blocks() {
  const at::NoGradGuard no_grad;
  std::vector<optim::ParameterRef> own;
  std::vector<optim::ParameterRef> other;
  const nn::Factor trained = factor_of(role_);
  const nn::Factor frozen =
      trained == nn::Factor::A ? nn::Factor::B : nn::Factor::A;
  own_numel_ = 0;
  for (const nn::NamedWeight& w : factored()) {
    own.push_back(
        {w.name + (trained == nn::Factor::A ? ".A" : ".B"),
         &w.weight->factor(trained),
         true,
         true});
    own_numel_ += w.weight->factor_numel(trained, w.weight->rank());
    other.push_back({w.name + ".frozen", &w.weight->factor(frozen)});
  }
  for (const optim::ParameterRef& ref : dense_parameters(context_.model)) {
    own.push_back(ref);
  }
  const optim::ParameterBlock old = std::move(trained_);
  trained_ = optim::ParameterBlock(own, true, context_.optimizer.moments());
  trained_.adopt(old);
  frozen_ = optim::ParameterBlock(other, false, 0);
  own_start_ = trained_.values().narrow(0, 0, own_numel_).clone();
  dense_start_ =
      trained_.values()
          .narrow(0, own_numel_, trained_.numel() - own_numel_)
          .clone();
  group_reducer_->reset();
  full_reducer_->reset();
}

}  // namespace abtrain::methods
