// The switches between the phases of AB-training: synchronizations,
// decompositions, and the averages that go with them.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "linalg/spectrum.h"
#include "methods/ab/ab.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

// The name of a layer's factor, or of its dense weight, in the trained block.
std::string trained_name(const nn::NamedWeight& w, nn::Factor which) {
  if (!w.weight->is_factored()) {
    return w.name;
  }
  return w.name + (which == nn::Factor::A ? ".A" : ".B");
}

}  // namespace

void AbTraining::average_dense(Event after) {
  const at::NoGradGuard no_grad;
  if (!groups_differ(context_.options, groups_)) {
    average_buffers(context_.model, context_.world, comm::Purpose::Sync, world_weight());
    return;
  }
  const std::vector<at::Tensor> parts = dense_parts();
  // Send the change of the values: a narrow wire dtype rounds only that.
  at::Tensor mean = parts[0] - dense_start_;
  at::Tensor unsent;
  std::vector<at::Tensor> whole;  // sent without codes
  if (outer_.codes_dense(after)) {
    unsent = mean;
    const at::Tensor& residual = outer_.dense_residual;
    // The exchange treats dense parameters as factors of one role.
    mean = outer_.send(residual, unsent, exchange_, 0, unsent.numel(), comm::Purpose::Sync).b;
  } else {
    outer_.add_residual(outer_.dense_residual, mean);
    whole.push_back(mean);
  }
  const at::ScalarType wire = outer_.dtype();
  std::vector<at::Tensor> wide;
  std::vector<at::Tensor>& moments = moment_wire(wire) == wire ? whole : wide;
  for (int k = 0; k < trained_.moment_count(); ++k) {
    if (outer_.averages(context_.optimizer.moment_kind(k), after)) {
      moments.push_back(parts[static_cast<std::size_t>(k) + 1]);
    }
  }
  average(whole, context_.world, comm::Purpose::Sync, wire, world_weight());
  average(wide, context_.world, comm::Purpose::Sync, moment_wire(wire), world_weight());
  average_buffers(context_.model, context_.world, comm::Purpose::Sync, world_weight());
  parts[0].copy_(dense_start_ + mean);
  outer_.dense_residual = unsent;
}

void AbTraining::synchronize(std::int64_t t, Event after) {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  MergedChanges merged = merged_changes(comm::Purpose::Sync, after != Event::None);
  average_dense(after);
  if (after != Event::None) {
    outer_.step(merged.mean);
  }
  outer_.factor_residual = merged.unsent;
  set_products(merged.mean);
  context_.observer.synchronized(t, name_of(context_.options.sync), watch.seconds());
}

void AbTraining::average_factors(std::int64_t t) {
  const at::NoGradGuard no_grad;
  Stopwatch watch;
  MergedChanges merged = merged_changes(comm::Purpose::Sync, true);
  average_dense(Event::AverageFactors);
  outer_.step(merged.mean);
  outer_.factor_residual = merged.unsent;
  const FlatFactors now = merge_factors(context_.options.sync, start_factors(), merged.mean);
  if (own_.size() == 2) {
    own_start_.copy_(at::cat({now.a, now.b}));
  } else {
    const bool of_a = trains(nn::Factor::A);
    own_start_.copy_(of_a ? now.a : now.b);
    frozen_.values().copy_(of_a ? now.b : now.a);
  }
  trained_.values().narrow(0, 0, own_numel_).copy_(own_start_);
  dense_start_.copy_(dense_part(trained_.values()));
  averaged_at_ = t;
  if (context_.options.roles == Roles::Alternate) {
    swap_roles();
  }
  context_.observer.synchronized(t, name_of(context_.options.sync), watch.seconds());
}

void AbTraining::swap_roles() {
  const bool carries = context_.options.moments == FactorMoments::Carry;
  const auto own_moments = [&] {
    return trained_.moments()
        .view({trained_.moment_count(), trained_.numel()})
        .narrow(1, 0, own_numel_);
  };
  const auto own_steps = [&] { return trained_.step_counts().narrow(0, 0, own_count_); };
  Waiting waiting = {own_moments().clone(), own_steps().clone(), outer_.factor_residual};
  std::swap(waiting, waiting_);
  own_ = {trains(nn::Factor::A) ? nn::Factor::B : nn::Factor::A};
  build_blocks();
  outer_.factor_residual = waiting.residual;
  if (carries && waiting.moments.defined()) {
    own_moments().copy_(waiting.moments.view_as(own_moments()));
    own_steps().copy_(waiting.steps);
  }
}

std::int64_t AbTraining::first_rank(const AbLayer& layer, bool rounds) const {
  const nn::Weight& w = layer.weight();
  linalg::RankRule rule = rule_after(planned_, make_phase_plan(planned_, context_.length), 0);
  if (!rounds) {
    rule.multiple = 1;
  }
  return linalg::choose_rank(
             rule, linalg::flat_spectrum(
                       layer.cut.name, std::max(w.m(), w.n()), w.largest_rank(), w.grid()))
      .rank;
}

void AbTraining::take_factors() {
  for (const nn::NamedWeight& w : context_.model.weights()) {
    const auto own = std::ranges::find(
        factorable_, w.weight, [](const AbLayer& layer) { return &layer.weight(); });
    const bool is_own = own != factorable_.end();
    ABT_CHECK(
        w.weight->is_factored() == is_own, Config,
        "model.adapter: the adapter {} '{}', but method.only and method.keep_dense {} it",
        is_own ? "lacks" : "adapts", w.layer, is_own ? "take" : "leave out");
    if (!is_own) {
      continue;
    }
    ABT_CHECK(
        linalg::kind_of(context_.options.rank).needs == linalg::RankNeeds::Shape &&
            first_rank(*own, false) == w.weight->rank(),
        Config, "method.rank: expected the rank of the adapter's '{}', {}; rule fixed gives it",
        w.layer, w.weight->rank());
    own->factors = w.weight->pair();
    own->cut.rank = w.weight->rank();
    own->cut.energy = 0;
  }
}

void AbTraining::draw_factors() {
  std::uint32_t place = 0;
  for (AbLayer& layer : factorable_) {
    nn::Weight& w = layer.weight();
    const std::int64_t rank = first_rank(layer, true);
    const at::TensorOptions options = w.dense.options().requires_grad(false);
    const at::Tensor inner = at::empty(w.stored_sizes(nn::Factor::A, rank));
    nn::draw(
        inner, nn::uniform_by_fan_in(w.in_features()).weight,
        Random(context_.seed, RandomPurpose::Adapters, place++));
    layer.factors = {
        w.to_matrix(nn::Factor::A, inner.to(options.device())),
        w.to_matrix(nn::Factor::B, at::zeros(w.stored_sizes(nn::Factor::B, rank), options))};
    layer.cut.rank = rank;
    layer.cut.energy = 0;
  }
}

void AbTraining::freeze_remainders() {
  const MethodOptions& options = context_.options;
  for (AbLayer& layer : factorable_) {
    nn::Weight& w = layer.weight();
    const at::ScalarType type = context_.model.precision().type;
    if (w.rest.defined()) {  // model.adapter
      w.rest = context_.model.shared().get(
          layer.named.name, w.rest.device(), [&] { return w.rest.to(type); });
      continue;
    }
    const bool by_svd = options.start == AdapterStart::Svd;
    w.start = by_svd ? layer.factors : linalg::LowRankPair();
    w.scale =
        !by_svd && options.alpha > 0 ? options.alpha / static_cast<double>(layer.cut.rank) : 1;
    w.rest = context_.model.shared().get(layer.named.name, w.dense.device(), [&] {
      const at::Tensor dense = w.dense.detach();
      return (by_svd ? dense - w.from_matrix(at::matmul(w.start.a, w.start.b)) : dense).to(type);
    });
  }
}

void AbTraining::enter_full() {
  const at::NoGradGuard no_grad;
  for (AbLayer& layer : factorable_) {
    layer.multiply_out();
  }
  phase_ = Phase::Full;
  build_blocks();
}

void AbTraining::decompose(std::int64_t t) {
  const at::NoGradGuard no_grad;
  // Adapters have no moments before their first factors.
  const bool carries = context_.options.moments == FactorMoments::Carry &&
                       !(phase_ == Phase::Full && adapts(context_.options));
  CutOptions how = {
      rule_after(planned_, make_phase_plan(planned_, context_.length), t), cuts(),
      context_.model.dense_parameters() - context_.model.frozen_parameters()};
  for (AbLayer& layer : factorable_) {
    how.other_parameters -= layer.weight().numel();
    layer.old_rank = layer.rank();
    for (const nn::Factor which : own_) {
      if (carries) {
        layer.moments.push_back(moments_of(layer, which));
      }
    }
  }
  Stopwatch watch;
  if (phase_ == Phase::Full) {
    // Until now each worker has had running statistics of its own.
    average_buffers(context_.model, context_.world, comm::Purpose::Sync, world_weight());
  }
  if (phase_ == Phase::Full && nn::is_adapted(context_.model)) {
    take_factors();
  } else if (
      phase_ == Phase::Full && adapts(context_.options) &&
      context_.options.start == AdapterStart::Zero) {
    draw_factors();
  } else {
    decompose_layers(factorable_, how, context_.world, svd_stream_, [&](double s) {
      context_.observer.add_svd_seconds(s);
    });
  }
  if (phase_ == Phase::Full) {
    reduction_.release();
    trained_.drop_gradients();  // frees memory for the factors
  }
  outer_.change_basis(own_, factorable_);
  if (phase_ == Phase::Full && adapts(context_.options)) {
    freeze_remainders();
  }
  const double seconds = watch.seconds();
  for (AbLayer& layer : factorable_) {
    LayerRank& cut = layer.cut;
    if (cut.rank > 0 && t == 0 && context_.options.keep_variance && cut.energy > 0) {
      const double scale = std::pow(cut.energy, -0.25);
      layer.factors = {layer.factors.a * scale, layer.factors.b * scale};
    }
    if (cut.rank > 0) {
      layer.weight().set_factors(layer.factors);
    } else {
      layer.multiply_out();
    }
    if (!decomposed_before_) {
      cut.first_energy = cut.energy;
    }
    // The first cut of a layer is the first that leaves it factored.
    if (cut.first_rank == 0 && cuts()) {
      cut.first_rank = cut.rank;
    }
  }
  phase_ = Phase::Ab;
  decomposed_before_ = true;
  build_blocks();
  context_.observer.decomposed(t, layers(), seconds);
  for (AbLayer& layer : factorable_) {
    if (carries) {
      carry_moments(layer);
    }
    layer.product = layer.factors = {};
    layer.moments.clear();
  }
}

AbLayer::Moments AbTraining::moments_of(const AbLayer& layer, nn::Factor which) {
  const std::size_t index = trained_.index_of(trained_name(layer.named, which));
  const at::Tensor& tensor = *trained_.parameters()[index].tensor;
  AbLayer::Moments moments = {trained_.steps()[index], {}};
  for (int k = 0; k < trained_.moment_count(); ++k) {
    moments.values.push_back(
        trained_.moment_views(k)[index].as_strided(tensor.sizes(), tensor.strides()));
  }
  return moments;
}

void AbTraining::carry_moments(const AbLayer& layer) {
  if (layer.cut.rank == 0) {
    return;
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const nn::Factor which = own_[i];
    const AbLayer::Moments& before = layer.moments[i];
    const AbLayer::Moments now = moments_of(layer, which);
    now.steps.copy_(before.steps);
    for (std::size_t k = 0; k < now.values.size(); ++k) {
      const optim::MomentKind kind = context_.optimizer.moment_kind(static_cast<int>(k));
      if (kind == optim::MomentKind::Other) {
        continue;
      }
      const nn::Weight& w = layer.weight();
      const at::Tensor carried = carry_gradient(
          layer.old_rank == 0 ? w.to_matrix(before.values[k])
                              : w.to_matrix(which, before.values[k]),
          which, layer, kind == optim::MomentKind::SquaredGradients);
      now.values[k].copy_(w.to_stored(which, carried));
    }
  }
}

void AbTraining::keep_dense_residual(const optim::ParameterBlock& old, std::int64_t old_own) {
  at::Tensor& residual = outer_.dense_residual;
  if (!residual.defined()) {
    return;
  }
  const at::Tensor kept = at::zeros({trained_.numel() - own_numel_}, residual.options());
  for (std::size_t i = 0; i < trained_.parameters().size(); ++i) {
    const auto before = std::ranges::find(
        old.parameters(), trained_.parameters()[i].name, &optim::ParameterRef::name);
    const auto place = static_cast<std::size_t>(before - old.parameters().begin());
    if (trained_.offset(i) >= own_numel_ && before != old.parameters().end()) {
      const std::int64_t numel = trained_.offset(i + 1) - trained_.offset(i);
      kept.narrow(0, trained_.offset(i) - own_numel_, numel)
          .copy_(residual.narrow(0, old.offset(place) - old_own, numel));
    }
  }
  residual = kept;
}

void AbTraining::build_blocks() {
  const at::NoGradGuard no_grad;
  const std::int64_t old_own = own_numel_;
  std::vector<optim::ParameterRef> own;
  std::vector<optim::ParameterRef> frozen;
  own_numel_ = 0;
  for (const nn::Factor which : {nn::Factor::A, nn::Factor::B}) {
    for (const AbLayer& layer : factorable_) {
      nn::Weight& w = layer.weight();
      if (!w.is_factored()) {
        continue;
      }
      if (!trains(which)) {
        frozen.push_back({layer.named.name + ".frozen", &w.factor(which)});
        continue;
      }
      own.push_back(
          {.name = trained_name(layer.named, which),
           .tensor = &w.factor(which),
           .is_factor = true,
           .position = layer.named.position,
           .matrices = layer.grid(),
           .halves_decay = own_.size() == 2});
      own_numel_ += w.factor_numel(which, w.rank());
    }
  }
  own_count_ = std::ssize(own);
  std::ranges::move(dense_parameters(context_.model), std::back_inserter(own));
  const optim::ParameterBlock old = std::move(trained_);
  trained_ = optim::ParameterBlock(own, true, context_.optimizer.moments());
  trained_.adopt(old);
  keep_dense_residual(old, old_own);
  frozen_ = optim::ParameterBlock(frozen, false, 0);
  own_start_ = trained_.values().narrow(0, 0, own_numel_).clone();
  dense_start_ = phase_ == Phase::Ab ? dense_part(trained_.values()).clone() : at::Tensor();
  bind_reductions();
  moved();
}

}  // namespace abtrain::methods
