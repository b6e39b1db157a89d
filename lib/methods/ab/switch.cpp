// The switches between the phases of AB-training: synchronizations,
// decompositions, and the averages that go with them.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "methods/ab/ab.h"
#include "methods/average.h"

namespace abtrain::methods {

namespace {

nn::Factor factor_of(comm::Role role) {
  return role == comm::Role::A ? nn::Factor::A : nn::Factor::B;
}

}  // namespace

void AbTraining::average_dense() {
  const at::NoGradGuard no_grad;
  const std::int64_t dense = trained_.numel() - own_numel_;
  // Send the change of the values: a narrow wire dtype rounds only that.
  at::Tensor values = trained_.values().narrow(0, own_numel_, dense);
  std::vector<at::Tensor> parts = {values - dense_start_};
  for (int k = 0; k < trained_.moment_count(); ++k) {
    parts.push_back(
        trained_.moments().narrow(0, k * trained_.numel() + own_numel_, dense));
  }
  average(parts, context_.world, comm::Purpose::Sync, outer_.dtype());
  values.copy_(dense_start_ + parts[0]);
  average_buffers(context_.model, context_.world, comm::Purpose::Sync);
}

void AbTraining::average_replicas(std::int64_t t, bool with_moments) {
  const at::NoGradGuard no_grad;
  // Send the change, as for the dense parameters in a synchronization.
  at::Tensor change = trained_.values() - dense_start_;
  average({change}, context_.world, comm::Purpose::Sync, full_wire_);
  trained_.values().copy_(dense_start_.add_(change));
  averaged_at_ = t;
  if (!with_moments) {
    return;
  }
  std::vector<at::Tensor> moments;
  for (std::size_t i = 0; i < trained_.parameters().size(); ++i) {
    const bool stays = std::ranges::find(
                           factorable_,
                           trained_.parameters()[i].name,
                           &nn::NamedWeight::name) == factorable_.end();
    for (int k = 0; stays && k < trained_.moment_count(); ++k) {
      moments.push_back(trained_.moment_views(k)[i]);
    }
  }
  // Squared gradients would underflow to zero in fp16.
  average(
      moments,
      context_.world,
      comm::Purpose::Sync,
      full_wire_ == at::kHalf ? at::kFloat : full_wire_);
}

AbTraining::Products AbTraining::synchronize(std::int64_t t, bool last) {
  Stopwatch watch;
  Products products = merged_products(comm::Purpose::Sync, !last);
  average_dense();
  context_.observer.synchronized(
      t, name_of(context_.options.sync), watch.seconds());
  return products;
}

void AbTraining::enter_full(const Products& products) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < factorable_.size(); ++i) {
    nn::Weight& w = *factorable_[i].weight;
    if (w.is_factored()) {
      w.set_dense(w.from_matrix(at::matmul(products[i].a, products[i].b)));
    }
  }
  phase_ = Phase::Full;
  build_blocks();
}

DecomposeOptions AbTraining::decompose_options(std::int64_t t) const {
  std::int64_t other = context_.model.dense_parameters();
  for (const nn::NamedWeight& w : factorable_) {
    other -= w.weight->numel();
  }
  return {
      rule_after(
          context_.options,
          make_phase_plan(context_.options, context_.length),
          t),
      cuts(),
      other,
      context_.options.svd};
}

void AbTraining::decompose(std::int64_t t, Products products) {
  products.resize(factorable_.size());
  const bool carries = context_.options.moments == FactorMoments::Carry;
  const std::vector<LayerMoments> moments =
      carries ? layer_moments() : std::vector<LayerMoments>();
  std::vector<BasisChange> basis;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < factorable_.size(); ++i) {
    const nn::Weight& w = *factorable_[i].weight;
    basis.push_back({w, w.rank(), 0, products[i], {}});
    sources.push_back(
        {factorable_[i],
         products[i],
         layers_.empty() ? 0 : layers_[i].first_rank});
  }
  Stopwatch watch;
  if (phase_ == Phase::Full) {
    full_reduction_.release();
    trained_.drop_gradients();  // the factors get memory of their own
    // The running statistics differ between workers up to here.
    average_buffers(context_.model, context_.world, comm::Purpose::Sync);
  }
  const std::vector<LayerFactors> factors = decompose_layers(
      sources,
      decompose_options(t),
      context_.world,
      svd_memory_,
      [&](double s) { context_.observer.add_svd_seconds(s); });
  for (std::size_t i = 0; i < basis.size(); ++i) {
    basis[i].new_rank = factors[i].rank;
    basis[i].after = factors[i].pair;
  }
  if (outer_.is_kept()) {
    outer_.change_basis(factor_of(role_), basis);
  }
  enter_ab(sources, factors, t, watch.seconds());
  if (carries) {
    carry_moments(moments, basis);
  }
}

std::vector<AbTraining::LayerMoments> AbTraining::layer_moments() {
  std::vector<LayerMoments> result;
  for (const nn::NamedWeight& w : factorable_) {
    const std::size_t index = trained_.index_of(trained_name(w));
    const at::Tensor& tensor = *trained_.parameters()[index].tensor;
    LayerMoments& layer = result.emplace_back();
    layer.steps = trained_.steps()[index];
    for (int k = 0; k < trained_.moment_count(); ++k) {
      layer.values.push_back(w.weight->to_matrix(
          factor_of(role_),
          trained_.moment_views(k)[index].as_strided(
              tensor.sizes(), tensor.strides())));
    }
  }
  return result;
}

void AbTraining::carry_moments(
    const std::vector<LayerMoments>& old,
    const std::vector<BasisChange>& basis) {
  const at::NoGradGuard no_grad;
  const nn::Factor own = factor_of(role_);
  for (std::size_t i = 0; i < basis.size(); ++i) {
    // Between two averages of local steps, dense moments differ within a group.
    if (basis[i].new_rank == 0 || (basis[i].old_rank == 0 && local_steps())) {
      continue;
    }
    const std::size_t index = trained_.index_of(trained_name(factorable_[i]));
    const at::Tensor& tensor = *trained_.parameters()[index].tensor;
    trained_.steps()[index].copy_(old[i].steps);
    for (int k = 0; k < trained_.moment_count(); ++k) {
      const optim::MomentKind kind = context_.optimizer.moment_kind(k);
      if (kind == optim::MomentKind::Other) {
        continue;
      }
      const at::Tensor carried = carry_gradient(
          old[i].values[static_cast<std::size_t>(k)],
          own,
          basis[i],
          kind == optim::MomentKind::SquaredGradients);
      trained_.moment_views(k)[index]
          .as_strided(tensor.sizes(), tensor.strides())
          .copy_(factorable_[i].weight->to_stored(own, carried));
    }
  }
}

std::string AbTraining::trained_name(const nn::NamedWeight& w) const {
  if (!w.weight->is_factored()) {
    return w.name;
  }
  return w.name + (role_ == comm::Role::A ? ".A" : ".B");
}

void AbTraining::enter_ab(
    const std::vector<Source>& sources,
    const std::vector<LayerFactors>& factors,
    std::int64_t t,
    double seconds) {
  const at::NoGradGuard no_grad;
  const std::vector<LayerRank> before = std::exchange(layers_, {});
  for (std::size_t i = 0; i < factorable_.size(); ++i) {
    nn::Weight& w = *factorable_[i].weight;
    const LayerFactors& f = factors[i];
    if (f.rank > 0) {
      w.set_factors(f.pair);
    } else if (sources[i].is_product()) {
      const linalg::LowRankPair& product = sources[i].product;
      w.set_dense(w.from_matrix(at::matmul(product.a, product.b)));
    }
    // The first cut of a layer is the first that leaves it factored.
    std::int64_t first_rank = before.empty() ? 0 : before[i].first_rank;
    if (first_rank == 0 && cuts()) {
      first_rank = f.rank;
    }
    layers_.push_back(
        {factorable_[i].layer,
         w.m(),
         w.n(),
         f.rank,
         f.energy,
         before.empty() ? f.energy : before[i].first_energy,
         f.values,
         first_rank});
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
  for (const nn::NamedWeight& w : factorable_) {
    if (!w.weight->is_factored()) {
      continue;
    }
    own.push_back(
        {trained_name(w),
         &w.weight->factor(trained),
         true,
         true,
         w.position,
         &w.weight->factor(frozen)});
    own_numel_ += w.weight->factor_numel(trained, w.weight->rank());
    other.push_back({w.name + ".frozen", &w.weight->factor(frozen)});
  }
  for (const optim::ParameterRef& ref : dense_parameters(context_.model)) {
    own.push_back(ref);
  }
  const optim::ParameterBlock old = std::move(trained_);
  trained_ = optim::ParameterBlock(own, true, context_.optimizer.moments());
  trained_.adopt(old);
  if (local_steps()) {
    // Moments of weights that might have been factored were not averaged.
    for (const nn::NamedWeight& w : factorable_) {
      if (!w.weight->is_factored()) {
        trained_.forget(w.name);
      }
    }
  }
  frozen_ = optim::ParameterBlock(other, false, 0);
  const bool ab = phase_ == Phase::Ab;
  own_start_ = trained_.values().narrow(0, 0, own_numel_).clone();
  dense_start_ = ab || local_steps()
                     ? trained_.values()
                           .narrow(0, own_numel_, trained_.numel() - own_numel_)
                           .clone()
                     : at::Tensor();
  bind_reductions();
  moved();
}

}  // namespace abtrain::methods
