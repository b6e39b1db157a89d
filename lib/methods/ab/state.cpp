// The state of AB-training: saving it, restoring it, and merging it for a
// different number of workers.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
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

// `list`: a cut per layer, or none before the first decomposition.
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
        first >= 0 && first <= w.n(), DamagedData,
        "the checkpoint's first rank of layer '{}': expected 0 to {}, got {}", layer.named.layer,
        w.n(), first);
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
        ranks[i] >= 0 && ranks[i] <= w.n(), DamagedData,
        "the checkpoint's rank of layer '{}': expected 0 to {}, got {}", factorable_[i].named.layer,
        w.n(), ranks[i]);
    const at::TensorOptions options =
        (w.is_factored() ? w.inner : w.dense).options().requires_grad(false);
    if (ranks[i] > 0) {
      w.set_factors({at::empty({w.m(), ranks[i]}, options), at::empty({ranks[i], w.n()}, options)});
    } else if (w.is_factored()) {
      w.set_dense(w.from_matrix(at::empty({w.m(), w.n()}, options)));
    }
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
    shape_weights(ranks);
    build_blocks();
  }
  // Between two averages of local steps every worker has a state of its own.
  const state::Owner owner =
      phase_ == Phase::Full && local_steps() ? state::Owner::Worker : state::Owner::Replicas;
  trained_.archive(archive, "trained.", owner);
  frozen_.archive(archive, "frozen.", owner);
  archive.tensor("own_start", own_start_, owner);
  archive.tensor("dense_start", dense_start_, owner);
  outer_.archive(
      archive, own_numel_, trained_.numel() - own_numel_, numel_of(nn::Factor::A),
      numel_of(nn::Factor::B));
  for (AbLayer& layer : factorable_) {
    if (archive.is_loading()) {
      layer.svd_start = at::Tensor();
    }
    if (linalg::may_be_partial(context_.options.svd, layer.weight().n())) {
      // It affects the bits, so a resume needs it.
      archive.tensor("svd_start." + layer.named.layer, layer.svd_start, state::Owner::Worker);
    }
  }
  if (archive.is_loading()) {
    bind_reductions();  // the block's tensors may have moved
  }
  if (GradientReduction* used = reduction()) {
    used->archive(archive, "reducer.");
  }
}

void AbTraining::regroup(std::vector<state::State>& old, std::int64_t t) {
  const at::NoGradGuard no_grad;
  const std::vector<nn::Factor> own = own_;
  const auto rest = std::ranges::stable_partition(
      old, [](state::State& state) { return text_of(state, "ab.role") != "A"; });
  const std::span of_a(rest);
  const std::span of_b(old.begin(), rest.begin());
  if (text_of(old.front(), "ab.phase") == "full") {
    load_mean(old);
  } else {
    // Merge them as a synchronization would have done.
    FlatFactors change;
    std::vector<at::Tensor> dense_of_a;
    if (!of_a.empty()) {
      own_ = {nn::Factor::A};
      load_mean(of_a);
      change.a = own_change();
      for (const at::Tensor& part : dense_parts()) {
        dense_of_a.push_back(part.clone());
      }
    }
    if (own.size() == 2) {
      load_mean(of_b);
      change = own_factors(own_change());
    } else if (!of_b.empty()) {
      own_ = {nn::Factor::B};
      load_mean(of_b);
      change.b = own_change();
    }
    if (!has_one_role(context_.options)) {
      // If all workers of a role are lost, its factor is as it was.
      for (const nn::Factor which : {nn::Factor::A, nn::Factor::B}) {
        at::Tensor& of_role = which == nn::Factor::A ? change.a : change.b;
        if (!of_role.defined()) {
          of_role = at::zeros({numel_of(which)}, trained_.values().options());
        }
      }
    }
    set_products(change);
    // B was loaded last, so its block keeps the dense parameters.
    const auto a_groups = static_cast<double>(of_a.size());
    const auto b_groups = static_cast<double>(of_b.size());
    std::vector<at::Tensor> dense = dense_parts();
    for (std::size_t i = 0; !of_b.empty() && i < dense_of_a.size(); ++i) {
      dense[i].copy_((dense_of_a[i] * a_groups + dense[i] * b_groups) / (a_groups + b_groups));
    }
    own_ = own;
    enter_full();
  }
  outer_.clear();
  for (AbLayer& layer : factorable_) {
    layer.svd_start = at::Tensor();  // it may have changed owners
  }
  bind_reductions();  // the residuals belonged to other workers
  // From dense weights to the phase that the timeline has after t steps.
  const Timeline::Last last = timeline_.last_event(t);
  switched_at_ = last.at;
  if (last.at >= 0 && last.event != Event::Synchronize) {
    decompose(t);
    switched_at_ = t;
  }
}

}  // namespace abtrain::methods
