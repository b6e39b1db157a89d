// The state of AB-training: saving it, restoring it, and merging it for a
// different number of workers.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/json.h"
#include "base/mapped.h"
#include "methods/ab/ab.h"

namespace abtrain::methods {

namespace {

nlohmann::ordered_json to_json(const std::vector<LayerRank>& cuts) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LayerRank& l : cuts) {
    list.push_back({l.name, l.m, l.n, l.rank, l.energy, l.first_energy, l.first_rank});
  }
  return list;
}

// `list`: one cut per layer, or empty before the first decomposition.
void read_cuts(const nlohmann::ordered_json& list, std::vector<AbLayer>& layers) {
  bool ok = list.is_array();
  ABT_CHECK(
      !ok || list.empty() || list.size() == layers.size(), DamagedData,
      "the checkpoint's last cut covers {} layers, but this model has {}", list.size(),
      layers.size());
  for (std::size_t i = 0; ok && i < list.size(); ++i) {
    const nlohmann::ordered_json& l = list[i];
    LayerRank& cut = layers[i].cut;
    ok = l.is_array() && l.size() == 7 && read_json(l[0], cut.name) && read_json(l[1], cut.m) &&
         read_json(l[2], cut.n) && read_json(l[3], cut.rank) && read_json(l[4], cut.energy) &&
         read_json(l[5], cut.first_energy) && read_json(l[6], cut.first_rank);
  }
  ABT_CHECK(
      ok, DamagedData,
      "the checkpoint's value 'ab.layers': expected the name, m, n, rank, two "
      "energies and the first rank of each layer, got {}",
      shown(list));
  for (AbLayer& layer : layers) {
    const nn::Weight& w = layer.weight();
    const std::int64_t first = layer.cut.first_rank;
    ABT_CHECK(
        first >= 0 && first <= w.largest_rank(), DamagedData,
        "the checkpoint's first rank of layer '{}': expected 0 to {}, got {}", layer.named.layer,
        w.largest_rank(), first);
  }
}

std::string text_of(state::State& state, const std::string& name) {
  std::string text;
  state::Archive::loading(state).value(name, text);
  return text;
}

}  // namespace

// Restores which weights are factored and which dense, but not their values.
void AbTraining::shape_weights(const std::vector<std::int64_t>& ranks) {
  const at::NoGradGuard no_grad;
  ABT_CHECK(
      ranks.size() == factorable_.size(), DamagedData,
      "the checkpoint has ranks for {} layers, but this model has {}", ranks.size(),
      factorable_.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    nn::Weight& w = factorable_[i].weight();
    ABT_CHECK(
        ranks[i] >= 0 && ranks[i] <= w.largest_rank() && ranks[i] % w.grid() == 0, DamagedData,
        "the checkpoint's rank of layer '{}': expected 0 to {} in steps of {}, got {}",
        factorable_[i].named.layer, w.largest_rank(), w.grid(), ranks[i]);
    const at::TensorOptions options =
        (w.is_factored() ? w.inner : w.dense).options().requires_grad(false);
    if (ranks[i] > 0 || w.is_factored()) {
      w.set_empty(ranks[i], options);
    }
  }
}

// Archives the first factors of adapters, which are needed to rebuild their remainders.
void AbTraining::archive_starts(state::Archive& archive) {
  const at::NoGradGuard no_grad;
  // With model.adapter, the first factors come from that adapter.
  const bool by_svd = context_.options.start == AdapterStart::Svd &&
                      (archive.is_loading() || factorable_.front().weight().start.a.defined());
  const std::vector<nn::Factor> both = {nn::Factor::A, nn::Factor::B};
  const auto first_rank = [](const AbLayer& layer) { return layer.cut.first_rank; };
  std::int64_t numel = 0;
  for (const nn::Factor which : both) {
    numel += factor_numel(factorable_, which, first_rank);
  }
  at::Tensor flat;
  const auto for_each = [&](const auto& body) {
    std::int64_t offset = 0;
    for (AbLayer& layer : factorable_) {
      for (const nn::Factor which : both) {
        body(layer, which, offset);
        offset += layer.weight().factor_numel(which, layer.cut.first_rank);
      }
    }
  };
  const auto part = [](auto& pair, nn::Factor which) -> auto& {
    return which == nn::Factor::A ? pair.a : pair.b;
  };
  if (by_svd && !archive.is_loading()) {
    flat = at::empty({numel}, trained_.values().options());
    for_each([&](AbLayer& layer, nn::Factor which, std::int64_t offset) {
      nn::Weight& w = layer.weight();
      nn::view_at(flat, offset, w.stored_sizes(which, layer.cut.first_rank))
          .copy_(w.to_stored(which, part(w.start, which)));
    });
  }
  if (context_.options.start == AdapterStart::Svd) {
    archive.tensor("adapter.start", flat, state::Owner::Replicas, numel);
  }
  const bool is_fresh = !factorable_.front().weight().rest.defined();
  if (!archive.is_loading() || !is_fresh) {
    return;
  }
  ABT_CHECK(
      !by_svd || flat.defined(), DamagedData, "the checkpoint lacks the adapter's first factors");
  if (by_svd) {
    flat = flat.to(factorable_.front().weight().dense.device());
    for_each([&](AbLayer& layer, nn::Factor which, std::int64_t offset) {
      part(layer.factors, which) =
          layer.matrix_at(flat, offset, which, layer.cut.first_rank).clone();
    });
  }
  freeze_remainders();
  for (AbLayer& layer : factorable_) {
    layer.factors = {};
  }
}

void AbTraining::archive(state::Archive& archive) {
  std::string phase = name_of(phase_);
  std::string role = own_.size() == 2 ? "AB" : trains(nn::Factor::A) ? "A" : "B";
  std::vector<std::int64_t> ranks = mapped(factorable_, &AbLayer::rank);
  nlohmann::ordered_json cuts = to_json(layers());
  archive.value("ab.phase", phase);
  archive.value("ab.role", role);
  archive.value("ab.ranks", ranks);
  archive.value("ab.layers", cuts);
  archive.value("ab.switched_at", switched_at_);
  archive.value("ab.decomposed_before", decomposed_before_);
  archive.value("ab.averaged_at", averaged_at_);
  if (archive.is_loading()) {
    ABT_CHECK(
        (phase == "full" || phase == "ab") && (role == "A" || role == "B" || role == "AB"),
        DamagedData,
        "the checkpoint's phase and role: expected full or ab and A, B or AB, got {} and {}",
        shown(phase), shown(role));
    phase_ = phase == "ab" ? Phase::Ab : Phase::Full;
    read_cuts(cuts, factorable_);
    ABT_CHECK(
        phase_ == Phase::Ab || std::ranges::count(ranks, 0) == std::ssize(ranks), DamagedData,
        "the checkpoint has factored layers in the full phase");
    if (context_.options.roles == Roles::Alternate) {
      own_ = {role == "A" ? nn::Factor::A : nn::Factor::B};
    }
  }
  if (adapts(context_.options) && phase_ == Phase::Ab) {
    archive_starts(archive);
  }
  if (archive.is_loading()) {
    shape_weights(ranks);
    build_blocks();
  }
  constexpr state::Owner owner = state::Owner::Replicas;
  trained_.archive(archive, "trained.", owner);
  frozen_.archive(archive, "frozen.", owner);
  archive.tensor("own_start", own_start_, owner);
  archive.tensor("dense_start", dense_start_, owner);
  outer_.archive(
      archive, own_numel_, trained_.numel() - own_numel_, numel_of(nn::Factor::A),
      numel_of(nn::Factor::B));
  if (context_.options.roles == Roles::Alternate) {
    if (archive.is_loading()) {
      waiting_ = {};
    }
    const std::int64_t other = numel_of(trains(nn::Factor::A) ? nn::Factor::B : nn::Factor::A);
    archive.tensor("waiting.moments", waiting_.moments, owner, trained_.moment_count() * other);
    archive.tensor("waiting.steps", waiting_.steps, owner, own_count_);
    archive.tensor("waiting.residual", waiting_.residual, owner, other);
  }
  if (archive.is_loading()) {
    bind_reductions();  // the block's tensors may have moved
  }
  if (GradientReduction* used = reduction()) {
    used->archive(archive, "reducer.");
  }
}

// Loads the mean of the states of one role. First adds to each its unsent changes, because the mean
// is taken without codes.
void AbTraining::load_role(std::span<state::State> old, const std::vector<nn::Factor>& role) {
  own_ = role;
  load_mean(old, [this] {
    outer_.add_residual(outer_.factor_residual, trained_.values().narrow(0, 0, own_numel_));
    outer_.add_residual(outer_.dense_residual, dense_part(trained_.values()));
  });
  outer_.factor_residual.reset();
  outer_.dense_residual.reset();
}

// Merges the groups as a synchronization would, but without an outer step.
void AbTraining::merge_roles(std::span<state::State> of_a, std::span<state::State> of_b) {
  const std::vector<nn::Factor> own = own_;
  FlatFactors change;
  std::vector<at::Tensor> dense, steps;  // the other role's mean and step counts
  const auto load = [&](nn::Factor role) {
    const std::span old = role == nn::Factor::A ? of_a : of_b;
    if (!old.empty()) {
      load_role(old, {role});
      (role == nn::Factor::A ? change.a : change.b) = own_change();
    }
    return !old.empty();
  };
  const nn::Factor other = trains(nn::Factor::A) ? nn::Factor::B : nn::Factor::A;
  if (load(other)) {
    const auto copy = [](const at::Tensor& part) { return part.clone(); };
    dense = mapped(dense_parts(), copy);
    steps = mapped(trained_.steps(), copy);
  }
  // The block keeps the moments of the role that is loaded last.
  const bool has_own = load(own.front());
  if (!has_one_role(context_.options)) {
    // If all workers of a role are lost, its factor stays unchanged.
    for (const nn::Factor which : {nn::Factor::A, nn::Factor::B}) {
      at::Tensor& of_role = which == nn::Factor::A ? change.a : change.b;
      if (!of_role.defined()) {
        of_role = at::zeros({numel_of(which)}, trained_.values().options());
      }
    }
  }
  set_products(change);
  if (!has_own) {
    own_ = own;
    build_blocks();
  } else if (!dense.empty()) {
    const auto groups = static_cast<double>(of_a.size() + of_b.size());
    const auto of_other = static_cast<double>((other == nn::Factor::A ? of_a : of_b).size());
    std::vector<at::Tensor> parts = dense_parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].copy_((dense[i] * of_other + parts[i] * (groups - of_other)) / groups);
    }
    // Groups may have been at different steps when they lost a worker. Dense parameters have the
    // same indices in the blocks of both roles.
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (trained_.offset(i) >= own_numel_) {
        trained_.steps()[i].copy_(at::maximum(trained_.steps()[i], steps[i]));
      }
    }
  }
}

void AbTraining::regroup(std::vector<state::State>& old, std::int64_t t) {
  const at::NoGradGuard no_grad;
  own_ = role_after(t);
  const bool was_ab = text_of(old.front(), "ab.phase") == name_of(Phase::Ab);
  // The phase that the timeline has after t steps.
  const Timeline::Last last = timeline_.last_event(t);
  const bool is_ab = last.at >= 0 && last.event != Event::Synchronize;
  // If groups train both factors, their mean needs no new basis. A run that lowers its ranks may be
  // due for a cut, though.
  const bool in_place =
      was_ab && is_ab && own_.size() == 2 && context_.options.anneal_steps.value == 0;
  if (!was_ab) {
    load_mean(old);
  } else if (own_.size() == 2) {
    load_role(old, std::vector(own_));
    if (!in_place) {
      set_products(own_factors(own_change()));
    }
  } else {
    const auto rest = std::ranges::stable_partition(
        old, [](state::State& state) { return text_of(state, "ab.role") != "A"; });
    merge_roles({rest.begin(), rest.end()}, {old.begin(), rest.begin()});
    waiting_ = {};
  }
  if (in_place) {
    own_start_.copy_(trained_.values().narrow(0, 0, own_numel_));
    dense_start_.copy_(dense_part(trained_.values()));
    switched_at_ = std::min(switched_at_, t);
    averaged_at_ = t;
    bind_reductions();  // the residuals belonged to other workers
    return;
  }
  if (was_ab && keeps_bases(context_.options)) {
    keep_products();
    switched_at_ = std::min(switched_at_, t);
    averaged_at_ = t;
    return;
  }
  switched_at_ = last.at;
  if (was_ab && !is_ab) {
    enter_full();
    outer_.clear();
  }
  if (is_ab) {
    decompose(t);
    switched_at_ = t;
  } else {
    bind_reductions();
  }
}

}  // namespace abtrain::methods
