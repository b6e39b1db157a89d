#include "plan/plan.h"

#include "config/check_run.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/rows.h"
#include "config/run_notes.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "methods/ab/decompose.h"
#include "methods/method_kind.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"
#include "train/trainer.h"

namespace abtrain::plan {

namespace {

// What a plan is made of, computed once.
struct Facts {
  PlannedData data;
  std::unique_ptr<nn::Model> model;
  RunLength length;
  std::optional<config::PlannedSizes> planned;
  std::vector<std::string> notes;  // settings that are hardly intended
};

Facts facts_of(const config::RunOptions& options) {
  PlannedData data = planned_data(options.data);
  const data::ExampleShape shape = data.shape;  // data is moved from below
  auto model = nn::make_model(options.model, shape);
  const RunLength length =
      config::check_run(options, shape, data.shape.train - options.data.validation);
  return {
      std::move(data), std::move(model), length, config::model_sizes(options, shape),
      config::run_notes(options, length)};
}

struct PlannedLayer {
  std::string name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::optional<std::int64_t> rank = 0;  // 0: dense; empty: by the spectrum
};

std::vector<PlannedLayer> layers_of(const config::RunOptions& options, const Facts& facts) {
  const auto factorable = methods::kind_of(options.method).factors_weights
                              ? methods::factorable_weights(*facts.model, options.method)
                              : std::vector<nn::NamedWeight>();
  std::vector<PlannedLayer> layers;
  for (const nn::NamedWeight& w : facts.model->weights()) {
    const auto place = std::ranges::find(factorable, w.weight, &nn::NamedWeight::weight);
    const auto index = static_cast<std::size_t>(place - factorable.begin());
    layers.push_back(
        {w.layer, w.weight->m(), w.weight->n(),
         place == factorable.end() ? std::optional<std::int64_t>(0)
         : facts.planned           ? std::optional(facts.planned->sizes.layers[index].rank)
                                   : std::nullopt});
  }
  return layers;
}

std::string layers_text(const config::RunOptions& options, const Facts& facts) {
  std::string out = formatted(
      "\nlayers\n  {:<22}{:>7}{:>7}{:>9}{:>12}{:>12}\n", "name", "m", "n", "rank", "dense",
      "stored");
  const bool is_estimate = facts.planned && facts.planned->estimated;
  for (const PlannedLayer& layer : layers_of(options, facts)) {
    const std::int64_t numel = layer.m * layer.n;
    std::string rank = "dense";
    std::string stored = with_commas(numel);
    if (!layer.rank) {
      rank = "spectrum";
      stored = "?";
    } else if (*layer.rank > 0) {
      const std::string about = is_estimate ? "~" : "";
      rank = formatted("{}{}", about, *layer.rank);
      stored = about + with_commas(*layer.rank * (layer.m + layer.n));
    }
    out += formatted(
        "  {}{:>7}{:>7}{:>9}{:>12}{:>12}\n", pad(layer.name, 22), layer.m, layer.n, rank,
        with_commas(numel), stored);
  }
  return out;
}

TimePlan time_of(
    const config::RunOptions& options, const Facts& facts, const TimeRequest& request) {
  ABT_CHECK(
      facts.planned, Config,
      "method.rank.rule: the ranks of this rule follow from the spectra, so "
      "the time cannot be planned; expected fixed, fraction, ratio or "
      "budget, or a run to take the ranks from (--against)");
  return time_of(options, facts.data.shape, facts.planned->sizes, facts.length, request);
}

std::string data_text(const config::RunOptions& options, const Facts& facts) {
  const data::DatasetShape& set = facts.data.shape;
  return formatted(
      "{}, {} training and {} test {} of {}{}", options.data.name,
      with_commas(set.train - options.data.validation), with_commas(set.test),
      data::examples_of(options.data),
      set.context > 0 ? formatted("{} tokens", set.context)
                      : formatted("{}x{}x{}", set.channels, set.height, set.width),
      facts.data.assumed.empty()
          ? ""
          : formatted(" (not found here; the sizes are {})", facts.data.assumed));
}

}  // namespace

TimePlan time_of(
    const config::RunOptions& options, const data::DatasetShape& shape,
    const methods::ModelSizes& sizes, const RunLength& length, const TimeRequest& request) {
  std::optional<ComputeTime> compute = request.compute;
  if (!compute) {
    // A worker on a GPU has that GPU to itself.
    const int per_node = device::pick_device(options.device).is_cuda()
                             ? 1
                             : static_cast<int>(options.workers) / request.network.nodes;
    compute = measure_compute(
        options, shape, sizes, request.workers_here > 0 ? request.workers_here : per_node);
  }
  return plan_time(options, sizes, length, request.network, *compute);
}

std::string plan_text(
    const config::RunOptions& options, const std::optional<TimeRequest>& request) {
  const Facts facts = facts_of(options);
  const RunLength& length = facts.length;
  const std::int64_t dense = facts.model->dense_parameters();
  std::string out = formatted(
      "{}: {}, {} on {}\n", options.name, options.method.name, options.model.name,
      options.data.name);
  out += row("data", data_text(options, facts));
  out +=
      row("steps", formatted(
                       "{}, {} per epoch, {} {} each", with_commas(length.steps),
                       with_commas(length.steps_per_epoch),
                       options.workers * options.data.batch_size * options.train.accumulate,
                       data::examples_of(options.data)));
  out += row(
      "workers",
      std::to_string(options.workers) +
          (options.balance.is_on()
               ? formatted(
                     ", with batches of {}{}", config::batches_text(config::batches_of(options)),
                     options.balance.measures
                         ? " here; their speeds are measured when the run starts"
                         : "")
               : ""));
  const methods::MethodKind& kind = methods::kind_of(options.method);
  if (kind.plan_text != nullptr) {
    out += kind.plan_text(config::method_setup(options), length);
  }
  out += row("parameters", with_commas(dense));
  if (kind.factors_weights && facts.planned) {
    const auto ratio = static_cast<double>(dense) / static_cast<double>(facts.planned->stored);
    out += row("stored", formatted("{}, {:.2f}:1", with_commas(facts.planned->stored), ratio));
  }
  out +=
      row("memory per worker", formatted(
                                   "{} for parameters, gradients and moments in a dense step",
                                   human_bytes(state_bytes(options, dense))));
  out += layers_text(options, facts);
  if (facts.planned) {
    out += traffic_text(options, facts.planned->sizes, length);
    if (facts.planned->estimated) {
      out +=
          "  ~ the budget rule distributes the ranks by the spectra; shown "
          "here with every layer at the same ratio\n";
    }
  } else {
    out +=
        "\ntraffic\n  depends on the ranks, which this rule takes from the "
        "spectra at each decomposition\n";
  }
  if (!facts.notes.empty()) {
    out += "\nwarnings\n  " + join(facts.notes, "\n  ") + "\n";
  }
  if (request) {
    out += time_text(options, length, request->network, time_of(options, facts, *request));
  }
  return out;
}

nlohmann::ordered_json plan_json(
    const config::RunOptions& options, const std::optional<TimeRequest>& request) {
  using nlohmann::ordered_json;
  const Facts facts = facts_of(options);
  const data::DatasetShape& set = facts.data.shape;
  const std::int64_t dense = facts.model->dense_parameters();
  ordered_json layers = ordered_json::array();
  for (const PlannedLayer& layer : layers_of(options, facts)) {
    layers.push_back(
        {{"name", layer.name},
         {"m", layer.m},
         {"n", layer.n},
         {"rank", layer.rank ? ordered_json(*layer.rank) : ordered_json()}});
  }
  ordered_json out = {
      {"name", options.name},
      {"method", options.method.name},
      {"model", options.model.name},
      {"data", options.data.name},
      {"data_found", facts.data.assumed.empty()},
      {"train_examples", set.train - options.data.validation},
      {"test_examples", set.test},
      {"workers", options.workers},
      {"steps", facts.length.steps},
      {"steps_per_epoch", facts.length.steps_per_epoch},
      {"examples_per_step", options.workers * options.data.batch_size * options.train.accumulate},
      {"batches", config::batches_of(options)},
      {"parameters",
       {{"dense", dense},
        {"stored", facts.planned ? ordered_json(facts.planned->stored) : ordered_json()}}},
      {"ranks_estimated", facts.planned && facts.planned->estimated},
      {"memory_bytes", state_bytes(options, dense)},
      {"layers", std::move(layers)},
      {"traffic",
       facts.planned ? traffic_json(options, facts.planned->sizes, facts.length) : ordered_json()},
      {"warnings", facts.notes}};
  if (request) {
    const TimePlan time = time_of(options, facts, *request);
    out["seconds"] = {
        {"network", network_text(request->network, time.measured)},
        {"dense_step", time.dense_step},
        {"ab_step", time.ab_step},
        {"synchronization", time.sync},
        {"decomposition", time.decompose},
        {"average_step", time.train / static_cast<double>(facts.length.steps)},
        {"train", time.train},
        {"compute", time.compute},
        {"communication", time.communication}};
  }
  return out;
}

}  // namespace abtrain::plan
