#include "config/planned_sizes.h"

#include <algorithm>
#include <memory>

#include "base/mapped.h"
#include "device/devices.h"
#include "linalg/rank_rule.h"
#include "methods/ab/decompose.h"
#include "methods/gradient_reduction.h"
#include "methods/method_kind.h"
#include "optim/optimizer.h"

namespace abtrain::config {

namespace {

// The ranks by a rule that needs no spectra; for a budget, estimates with all layers at one ratio.
std::vector<std::int64_t> planned_ranks(
    const linalg::RankRule& rule, const std::vector<nn::NamedWeight>& weights,
    std::int64_t parameters) {
  std::vector<linalg::Spectrum> flat;
  std::int64_t other = parameters;
  for (const nn::NamedWeight& w : weights) {
    flat.push_back(linalg::flat_spectrum(
        w.layer, std::max(w.weight->m(), w.weight->n()), w.weight->largest_rank(),
        w.weight->grid()));
    other -= w.weight->numel();
  }
  // Also throws if a budget cannot be met.
  const auto choices = linalg::choose_ranks(rule, flat, other);
  const linalg::RankRule even =
      linalg::even_rule(rule, static_cast<double>(parameters - other), static_cast<double>(other));
  std::vector<std::int64_t> ranks;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    ranks.push_back(
        linalg::is_global(rule) ? linalg::choose_rank(even, flat[i]).rank : choices[i].rank);
  }
  return ranks;
}

// A layer that is not listed stays dense.
std::vector<std::int64_t> ranks_by_name(
    const std::vector<nn::NamedWeight>& weights, std::map<std::string, std::int64_t> ranks) {
  return mapped(weights, [&](const nn::NamedWeight& w) { return ranks[w.layer]; });
}

void set_ranks(
    methods::ModelSizes& sizes, const nn::Model& model, const std::vector<nn::NamedWeight>& weights,
    const std::vector<std::int64_t>& planned, methods::Trains trains) {
  sizes.layers.clear();
  std::map<const nn::Weight*, std::int64_t> rank_of;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const nn::Weight& w = *weights[i].weight;
    sizes.layers.push_back({w.m(), w.n(), planned[i], w.grid()});
    rank_of[&w] = planned[i];
  }
  std::vector<std::int64_t> ranks;
  for (const nn::NamedWeight& w : model.weights()) {
    ranks.push_back(rank_of[w.weight]);  // 0: dense
  }
  const bool both = trains == methods::Trains::Both;
  sizes.a = methods::factor_slots(
      model, ranks, both ? std::vector{nn::Factor::A, nn::Factor::B} : std::vector{nn::Factor::A});
  sizes.b = both ? sizes.a : methods::factor_slots(model, ranks, {nn::Factor::B});
}

// The parameters in a run's model file. `pairs`: factor pairs per factored layer.
std::int64_t stored_parameters(const methods::ModelSizes& sizes, std::int64_t pairs) {
  std::int64_t stored = sizes.parameters;
  for (const methods::LayerShape& l : sizes.layers) {
    stored += (l.rank > 0 ? pairs : 1) * l.stored() - l.m * l.n;
  }
  return stored;
}

}  // namespace

std::int64_t rank_multiple(const RunOptions& options, bool on_gpu) {
  return options.method.rank.multiple.value_or(
      on_gpu && options.train.precision != at::kFloat ? 8 : 1);
}

linalg::RankRule planned_rule(const RunOptions& options) {
  linalg::RankRule rule = options.method.rank;
  using device::DeviceChoice;
  // A run for another machine may ask for a GPU.
  const bool on_gpu = options.device == DeviceChoice::Cuda ||
                      (options.device == DeviceChoice::Auto && !device::cuda_devices().empty());
  rule.multiple = rank_multiple(options, on_gpu);
  rule.always = methods::adapts(options.method);
  return rule;
}

std::int64_t trained_parameters(const PlannedSizes& planned) {
  return stored_parameters(planned.sizes, 1);
}

std::optional<PlannedSizes> model_sizes(
    const RunOptions& options, const data::ExampleShape& shape,
    const std::map<std::string, std::int64_t>* known) {
  const std::shared_ptr<nn::Model> model = nn::make_model(options.model, shape);
  methods::ModelSizes sizes;
  for (const nn::NamedBuffer& b : model->buffers()) {
    sizes.buffers += b.is_fixed ? 0 : b.tensor->numel();
  }
  const auto optimizer = optim::make_optimizer(options.optimizer);
  sizes.moments = optimizer->moments();
  for (int k = 0; k < sizes.moments; ++k) {
    sizes.kept_moments += optimizer->moment_kind(k) != optim::MomentKind::Other ? 1 : 0;
  }
  const bool factors = methods::kind_of(options.method).factors_weights;
  // Also marks adapted weights as not frozen, which frozen_parameters() needs.
  const auto weights = factors ? methods::factorable_weights(*model, options.method)
                               : std::vector<nn::NamedWeight>();
  sizes.parameters = model->dense_parameters() - model->frozen_parameters();
  sizes.dense = methods::dense_slots(*model);
  sizes.weights = nn::weight_positions(*model);
  if (!factors) {
    return PlannedSizes{sizes, false, sizes.parameters};
  }
  const linalg::RankRule rule = planned_rule(options);
  if (known == nullptr && linalg::kind_of(rule).needs == linalg::RankNeeds::Values) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> planned = known == nullptr
                                                ? planned_ranks(rule, weights, sizes.parameters)
                                                : ranks_by_name(weights, *known);
  set_ranks(sizes, *model, weights, planned, options.method.trains);
  if (options.method.anneal_steps.value > 0) {
    sizes.at_ratio = [=, plain = sizes, trains = options.method.trains](double ratio) {
      methods::ModelSizes out = plain;
      linalg::RankRule earlier = rule;
      earlier.ratio = ratio;
      set_ranks(out, *model, weights, planned_ranks(earlier, weights, out.parameters), trains);
      return out;
    };
  }
  const bool estimated = known == nullptr && linalg::is_global(rule);
  return PlannedSizes{
      sizes, estimated,
      estimated ? static_cast<std::int64_t>(static_cast<double>(sizes.parameters) / rule.ratio)
                : stored_parameters(
                      sizes,
                      trains_adapters(options) && options.method.start == methods::AdapterStart::Svd
                          ? 2
                          : 1)};
}

}  // namespace abtrain::config
