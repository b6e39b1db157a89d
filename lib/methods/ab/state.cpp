// The state of AB-training: saving it, restoring it, and merging it for a
// different number of workers.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "linalg/spectrum.h"
#include "methods/ab/ab.h"

namespace abtrain::methods {

namespace {

nlohmann::ordered_json to_json(const std::vector<LayerRank>& layers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const LayerRank& l : layers) {
    list.push_back(
        {l.name, l.m, l.n, l.rank, l.energy, l.first_energy, l.first_rank});
  }
  return list;
}

std::vector<LayerRank> from_json(const nlohmann::ordered_json& list) {
  std::vector<LayerRank> layers;
  bool ok = list.is_array();
  for (std::size_t i = 0; ok && i < list.size(); ++i) {
    const nlohmann::ordered_json& l = list[i];
    LayerRank& layer = layers.emplace_back();
    ok = l.is_array() && (l.size() == 6 || l.size() == 7) &&
         read_json(l[0], layer.name) && read_json(l[1], layer.m) &&
         read_json(l[2], layer.n) && read_json(l[3], layer.rank) &&
         read_json(l[4], layer.energy) && read_json(l[5], layer.first_energy);
    // Older checkpoints have no first rank: go no lower than the present one.
    ok = ok && read_json(l.size() == 7 ? l[6] : l[3], layer.first_rank);
  }
  ABT_CHECK(
      ok,
      DamagedData,
      "the checkpoint's value 'ab.layers': expected the name, m, n, rank, two "
      "energies and the first rank of each layer, got {}",
      shown(list));
  return layers;
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
      ranks.size() == factorable_.size(),
      DamagedData,
      "the checkpoint has ranks for {} layers, but this model has {}",
      ranks.size(),
      factorable_.size());
  const at::TensorOptions options =
      context_.model.weights().front().weight->is_factored()
          ? context_.model.weights().front().weight->inner.options()
          : context_.model.weights().front().weight->dense.options();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    nn::Weight& w = *factorable_[i].weight;
    ABT_CHECK(
        ranks[i] >= 0 && ranks[i] <= std::min(w.m(), w.n()),
        DamagedData,
        "the checkpoint's rank of layer '{}': expected 0 to {}, got {}",
        factorable_[i].layer,
        std::min(w.m(), w.n()),
        ranks[i]);
    if (ranks[i] > 0) {
      w.set_factors(
          {at::empty({w.m(), ranks[i]}, options.requires_grad(false)),
           at::empty({ranks[i], w.n()}, options.requires_grad(false))});
    } else if (w.is_factored()) {
      w.set_dense(w.from_matrix(
          at::empty({w.m(), w.n()}, options.requires_grad(false))));
    }
  }
}

void AbTraining::archive(state::Archive& archive) {
  std::string phase = name_of(phase_);
  std::string role = role_ == comm::Role::A ? "A" : "B";
  std::vector<std::int64_t> ranks;
  for (const nn::NamedWeight& w : factorable_) {
    ranks.push_back(w.weight->rank());
  }
  nlohmann::ordered_json layers = to_json(layers_);
  archive.value("ab.phase", phase);
  archive.value("ab.role", role);
  archive.value("ab.ranks", ranks);
  archive.value("ab.layers", layers);
  archive.value("ab.switched_at", switched_at_);
  archive.value("ab.rate_at_switch", rate_at_switch_);
  archive.value("ab.decomposed_before", decomposed_before_);
  archive.value("ab.averaged_at", averaged_at_);
  if (archive.is_loading()) {
    ABT_CHECK(
        (phase == "full" || phase == "ab") && (role == "A" || role == "B"),
        DamagedData,
        "the checkpoint's phase and role: expected full or ab and A or B, got "
        "{} and {}",
        shown(phase),
        shown(role));
    phase_ = phase == "ab" ? Phase::Ab : Phase::Full;
    layers_ = from_json(layers);
    ABT_CHECK(
        layers_.empty() || layers_.size() == factorable_.size(),
        DamagedData,
        "the checkpoint's last cut covers {} layers, but this model has {}",
        layers_.size(),
        factorable_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const nn::Weight& w = *factorable_[i].weight;
      std::int64_t& first = layers_[i].first_rank;
      ABT_CHECK(
          first >= 0 && first <= w.n(),
          DamagedData,
          "the checkpoint's first rank of layer '{}': expected 0 to {}, got {}",
          factorable_[i].layer,
          w.n(),
          first);
      if (first > linalg::largest_saving_rank({"", w.m(), w.n(), {}})) {
        first = 0;  // of an older checkpoint: the full rank of an uncut phase
      }
    }
    ABT_CHECK(
        phase_ == Phase::Ab ||
            std::ranges::count(ranks, 0) == std::ssize(ranks),
        DamagedData,
        "the checkpoint has factored layers in the full phase");
    shape_weights(ranks);
    build_blocks();
  }
  // Between two averages of local steps every worker has a state of its own.
  const state::Owner owner = phase_ == Phase::Full && local_steps()
                                 ? state::Owner::Worker
                                 : state::Owner::Replicas;
  trained_.archive(archive, "trained.", owner);
  frozen_.archive(archive, "frozen.", owner);
  archive.tensor("own_start", own_start_, owner);
  archive.tensor("dense_start", dense_start_, owner);
  outer_.archive(
      archive, own_numel_, numel_of(nn::Factor::A), numel_of(nn::Factor::B));
  std::vector<std::string> large;
  for (const nn::NamedWeight& w : factorable_) {
    if (linalg::may_be_partial(context_.options.svd, w.weight->n())) {
      large.push_back(w.layer);
    }
  }
  svd_memory_.archive(archive, large);
  if (archive.is_loading()) {
    bind_reductions();  // the block's tensors may have moved
  }
  if (GradientReduction* used = reduction()) {
    used->archive(archive, "reducer.");
  }
}

// Loads the mean of what the workers of `old` hold of the trained block: the
// workers of one role in the AB phase, all workers otherwise.
void AbTraining::load_mean(const std::vector<state::State*>& old) {
  const at::NoGradGuard no_grad;
  at::Tensor values;
  at::Tensor moments;
  for (state::State* state : old) {
    state::Archive archive = state::Archive::loading(*state);
    this->archive(archive);
    if (!values.defined()) {
      values = trained_.values().clone();
      moments = trained_.moments().clone();
    } else {
      values.add_(trained_.values());
      moments.add_(trained_.moments());
    }
  }
  const auto n = static_cast<double>(old.size());
  trained_.values().copy_(values.div_(n));
  trained_.moments().copy_(moments.div_(n));
}

void AbTraining::regroup(std::vector<state::State>& old, std::int64_t t) {
  const at::NoGradGuard no_grad;
  const comm::Role own_role = role_;
  std::vector<state::State*> of_a;
  std::vector<state::State*> of_b;
  for (state::State& state : old) {
    (text_of(state, "ab.role") == "A" ? of_a : of_b).push_back(&state);
  }
  if (text_of(old.front(), "ab.phase") == "full") {
    of_b.insert(of_b.end(), of_a.begin(), of_a.end());
    load_mean(of_b);
  } else {
    // Merge them as a synchronization would have done.
    struct Side {
      Products start, now;
      at::Tensor dense;
      at::Tensor moments;
      double groups = 0;
    };
    const auto read = [&](comm::Role role,
                          const std::vector<state::State*>& states) {
      Side side;
      if (states.empty()) {
        return side;
      }
      role_ = role;
      load_mean(states);
      side.groups = static_cast<double>(states.size());
      side.dense = trained_.values()
                       .narrow(0, own_numel_, trained_.numel() - own_numel_)
                       .clone();
      std::vector<at::Tensor> moments;
      const auto factors = [&] {
        Products pairs(factorable_.size());
        for (std::size_t i = 0; i < factorable_.size(); ++i) {
          if (factorable_[i].weight->is_factored()) {
            const linalg::LowRankPair pair = factorable_[i].weight->pair();
            pairs[i] = {pair.a.clone(), pair.b.clone()};
          }
        }
        return pairs;
      };
      side.now = factors();
      trained_.values().narrow(0, 0, own_numel_).copy_(own_start_);
      side.start = factors();
      for (int k = 0; k < trained_.moment_count(); ++k) {
        moments.push_back(trained_.moments().narrow(
            0,
            k * trained_.numel() + own_numel_,
            trained_.numel() - own_numel_));
      }
      side.moments = moments.empty() ? at::Tensor() : at::cat(moments);
      return side;
    };
    const Side a = read(comm::Role::A, of_a);
    const Side b = read(comm::Role::B, of_b);
    role_ = own_role;
    Products products;
    for (std::size_t i = 0; i < b.now.size(); ++i) {
      linalg::LowRankPair& product = products.emplace_back();
      if (!b.now[i].a.defined()) {
        continue;
      }
      product = merge_factors(
          context_.options.sync,
          b.start[i],
          a.now.empty() ? at::Tensor() : a.now[i].a - a.start[i].a,
          b.now[i].b - b.start[i].b);
    }
    // B was loaded last, so its block keeps the dense parameters.
    const auto mean = [&](const at::Tensor& x, const at::Tensor& y) {
      return x.defined() ? (x * a.groups + y * b.groups) / (a.groups + b.groups)
                         : y;
    };
    const std::int64_t dense = trained_.numel() - own_numel_;
    trained_.values()
        .narrow(0, own_numel_, dense)
        .copy_(mean(a.dense, b.dense));
    if (b.moments.defined()) {
      const at::Tensor moments = mean(a.moments, b.moments);
      for (int k = 0; k < trained_.moment_count(); ++k) {
        trained_.moments()
            .narrow(0, k * trained_.numel() + own_numel_, dense)
            .copy_(moments.narrow(0, k * dense, dense));
      }
    }
    enter_full(products);
  }
  role_ = own_role;
  outer_.clear();
  svd_memory_.clear();  // layers may have changed owners
  bind_reductions();    // the residuals belonged to other workers
  enter_phase_of(t);
}

// Goes from dense weights to the phase that the timeline has after t steps.
void AbTraining::enter_phase_of(std::int64_t t) {
  const Timeline::Last last = timeline_.last_event(t);
  switched_at_ = last.at;
  if (last.at >= 0 && last.event != Event::Synchronize) {
    decompose(t);
    switched_at_ = t;
  }
  rate_at_switch_ = switched_at_ >= 0 ? context_.schedule.at(switched_at_) : 0;
}

}  // namespace abtrain::methods
