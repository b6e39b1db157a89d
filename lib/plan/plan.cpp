#include "plan/plan.h"

#include "config/check_run.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/mapped.h"
#include "base/rows.h"
#include "config/run_notes.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "methods/ab/decompose.h"
#include "methods/method_kind.h"
#include "plan/ab_notes.h"
#include "plan/planned_data.h"
#include "plan/possible_sizes.h"
#include "plan/traffic.h"
#include "train/trainer.h"

namespace abtrain::plan {

namespace {

// The inputs of a plan, computed once.
struct Facts {
  PlannedData data;
  std::unique_ptr<nn::Model> model;
  RunLength length;
  std::vector<config::PlannedSizes> possible;  // one, or the extremes that spectra may give
  std::vector<std::string> notes;              // warnings about data and settings
  std::int64_t trained = 0;                    // config::trained_parameters()

  bool knows_ranks() const {
    return possible.size() == 1;
  }
  bool is_estimate() const {
    return possible.front().estimated;
  }
};

Facts facts_of(const config::RunOptions& options) {
  PlannedData data = planned_data(options.data);
  const data::ExampleShape shape = data.shape;  // data is moved from below
  auto model = nn::make_model(options.model, shape);
  const RunLength length =
      config::check_run(options, shape, data.shape.train - options.data.validation);
  ABT_CHECK(
      !length.by_clock, Config,
      "train.seconds: the number of steps in {} is only known after the run; to plan, set "
      "train.seconds=0 and train.steps or train.epochs",
      human_seconds(options.train.seconds));
  std::vector<config::PlannedSizes> possible = possible_sizes(options, shape);
  std::vector<std::string> notes = data.shape.account.doubts;
  std::ranges::move(config::run_notes(options, length), std::back_inserter(notes));
  if (methods::kind_of(options.method).factors_weights) {
    std::ranges::move(ab_notes(*model, possible), std::back_inserter(notes));
  }
  return {std::move(data),     std::move(model), length,
          std::move(possible), std::move(notes), config::trained_parameters(options, shape)};
}

struct PlannedLayer {
  std::string name;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t grid = 1;  // blocks per side
  // The layer's rank in each of Facts::possible; 0: dense.
  std::vector<std::int64_t> ranks;

  // Range of the ranks with which the layer may be factored; nullopt: it always stays dense.
  std::optional<Bounds> factored() const {
    std::vector<std::int64_t> some;
    std::ranges::copy_if(ranks, std::back_inserter(some), [](auto rank) { return rank > 0; });
    return some.empty() ? std::nullopt : std::optional(bounds_of(some, std::identity()));
  }
  Bounds stored() const {
    return bounds_of(ranks, [&](std::int64_t rank) {
      return methods::LayerShape{m, n, rank}.stored();
    });
  }
};

std::vector<PlannedLayer> layers_of(const config::RunOptions& options, const Facts& facts) {
  const auto factorable = methods::kind_of(options.method).factors_weights
                              ? methods::factorable_weights(*facts.model, options.method)
                              : std::vector<nn::NamedWeight>();
  std::vector<PlannedLayer> layers;
  for (const nn::NamedWeight& w : facts.model->weights()) {
    const auto place = std::ranges::find(factorable, w.weight, &nn::NamedWeight::weight);
    const auto index = static_cast<std::size_t>(place - factorable.begin());
    const auto rank = [&](const config::PlannedSizes& planned) {
      return place == factorable.end() ? 0 : planned.sizes.layers[index].rank;
    };
    layers.push_back(
        {w.layer, w.weight->m(), w.weight->n(), w.weight->grid(), mapped(facts.possible, rank)});
  }
  return layers;
}

std::string layers_text(const config::RunOptions& options, const Facts& facts) {
  const int wide = facts.knows_ranks() ? 12 : 24;
  std::string out = formatted(
      "\nlayers\n  {:<22}{:>7}{:>7}{:>9}{:>12}{:>{}}\n", "name", "m", "n", "rank", "dense",
      "stored", wide);
  const auto range = [](const Bounds& bounds) {
    const auto least = static_cast<std::int64_t>(bounds.least);
    const auto most = static_cast<std::int64_t>(bounds.most);
    return with_commas(least) + (least == most ? "" : "-" + with_commas(most));
  };
  for (const PlannedLayer& layer : layers_of(options, facts)) {
    const auto factored = layer.factored();
    const std::string about = factored && facts.is_estimate() ? "~" : "";
    const auto ranks = [&] {
      const auto each = static_cast<double>(layer.grid);
      return layer.grid == 1 ? range(*factored)
                             : formatted(
                                   "{} x {}", layer.grid,
                                   range({factored->least / each, factored->most / each}));
    };
    out += formatted(
        "  {}{:>7}{:>7}{:>9}{:>12}{:>{}}\n", pad(layer.name, 22), layer.m, layer.n,
        about + (factored ? ranks() : "dense"), with_commas(layer.m * layer.n),
        about + range(layer.stored()), wide);
  }
  return out;
}

ComputeTime compute_of(
    const config::RunOptions& options, const data::DatasetShape& shape,
    const methods::ModelSizes& sizes, const TimeRequest& request) {
  if (request.compute) {
    return *request.compute;
  }
  // A worker on a GPU has that GPU to itself.
  const int per_node = device::pick_device(options.device).is_cuda()
                           ? 1
                           : static_cast<int>(options.workers) / request.network.nodes;
  return measure_compute(
      options, shape, sizes, request.workers_here > 0 ? request.workers_here : per_node);
}

std::vector<TimePlan> times_of(
    const config::RunOptions& options, const Facts& facts, const TimeRequest& request) {
  std::vector<TimePlan> times;
  for (const config::PlannedSizes& planned : facts.possible) {
    ComputeTime compute = compute_of(options, facts.data.shape, planned.sizes, request);
    if (!times.empty()) {
      compute.dense = times.front().measured.dense;  // it does not depend on the ranks
    }
    times.push_back(plan_time(options, planned.sizes, facts.length, request.network, compute));
  }
  return times;
}

nlohmann::ordered_json seconds_json(
    const TimePlan& time, const Network& network, const RunLength& length) {
  return {
      {"network", network_text(network, time.measured)},
      {"dense_step", time.dense_step},
      {"ab_step", time.ab_step},
      {"synchronization", time.sync},
      {"decomposition", time.decompose},
      {"average_step", time.train / static_cast<double>(length.steps)},
      {"train", time.train},
      {"compute", time.compute},
      {"communication", time.communication}};
}

// The minimum, or the maximum, of each number over objects with the same keys.
nlohmann::ordered_json extreme(const std::vector<nlohmann::ordered_json>& ends, bool most) {
  nlohmann::ordered_json out = ends.front();
  for (auto item = out.begin(); item != out.end(); ++item) {
    const std::string& key = item.key();
    if (item->is_number()) {
      const auto better = std::ranges::minmax(
          ends, {}, [&](const auto& end) { return end.at(key).template get<double>(); });
      *item = (most ? better.max : better.min).at(key);
    }
  }
  return out;
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
  return plan_time(
      options, sizes, length, request.network, compute_of(options, shape, sizes, request));
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
  const data::Account& account = facts.data.shape.account;
  if (!account.task.empty()) {
    out += row("task", account.task);
  }
  for (const std::string& fact : account.facts) {
    out += row(&fact == &account.facts.front() ? "read" : "", fact);
  }
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
  if (kind.factors_weights) {
    const auto count = [](double parameters) {
      return with_commas(static_cast<std::int64_t>(parameters));
    };
    const auto ratio = [&](const config::PlannedSizes& planned) {
      return static_cast<double>(dense) / static_cast<double>(planned.stored);
    };
    out +=
        row("stored",
            formatted(
                "{}, {}", between(bounds_of(facts.possible, &config::PlannedSizes::stored), count),
                between(bounds_of(facts.possible, ratio), [](double one) {
                  return formatted("{:.2f}:1", one);
                })));
  }
  out +=
      row("memory per worker", formatted(
                                   "{} for parameters, gradients and moments in {}{}",
                                   human_bytes(state_bytes(options, facts.trained)),
                                   config::trains_adapters(options) ? "a step" : "a dense step",
                                   config::keeps_base(options)
                                       ? formatted(
                                             "; the workers of a process share {} of frozen ones",
                                             human_bytes(config::base_bytes(options, dense)))
                                       : ""));
  out += layers_text(options, facts);
  out += traffic_text(options, facts.possible, length);
  if (facts.is_estimate()) {
    out +=
        "  ~ the budget rule distributes the ranks by the spectra; shown "
        "here with every layer at the same ratio\n";
  }
  if (!facts.knows_ranks()) {
    out += formatted(
        "  The ranks follow from the spectra at each decomposition (method.rank.rule: {}): these "
        "are the least and\n  the most. A layer whose factors would be no smaller stays dense.\n",
        linalg::kind_of(options.method.rank).name);
  }
  if (!facts.notes.empty()) {
    out += "\nwarnings\n  " + join(facts.notes, "\n  ") + "\n";
  }
  if (request) {
    out += time_text(options, length, request->network, times_of(options, facts, *request));
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
    layers.push_back({{"name", layer.name}, {"m", layer.m}, {"n", layer.n}});
    if (layer.grid > 1) {
      layers.back()["blocks"] = layer.grid;
    }
    const auto factored = layer.factored();
    const bool is_known =
        std::ranges::count(layer.ranks, layer.ranks.front()) == std::ssize(layer.ranks);
    layers.back()["rank"] = is_known ? ordered_json(layer.ranks.front()) : ordered_json();
    if (!is_known) {
      layers.back()["ranks"] = {factored->least, factored->most};
    }
  }
  const auto traffic = mapped(facts.possible, [&](const config::PlannedSizes& planned) {
    return traffic_json(options, planned.sizes, facts.length);
  });
  ordered_json out = {
      {"name", options.name},
      {"method", options.method.name},
      {"model", options.model.name},
      {"data", options.data.name},
      {"data_found", facts.data.assumed.empty()},
      {"train_examples", set.train - options.data.validation},
      {"test_examples", set.test},
      {"task", set.account.task},
      {"facts", set.account.facts},
      {"workers", options.workers},
      {"steps", facts.length.steps},
      {"steps_per_epoch", facts.length.steps_per_epoch},
      {"examples_per_step", options.workers * options.data.batch_size * options.train.accumulate},
      {"batches", config::batches_of(options)},
      {"parameters",
       {{"dense", dense},
        {"stored",
         facts.knows_ranks() ? ordered_json(facts.possible.front().stored) : ordered_json()}}},
      {"ranks_estimated", facts.is_estimate()},
      {"memory_bytes", state_bytes(options, facts.trained)},
      {"layers", std::move(layers)},
      {"traffic", facts.knows_ranks() ? traffic.front() : ordered_json()},
      {"warnings", facts.notes}};
  std::vector<ordered_json> seconds;
  if (request) {
    seconds = mapped(times_of(options, facts, *request), [&](const TimePlan& time) {
      return seconds_json(time, request->network, facts.length);
    });
    out["seconds"] = facts.knows_ranks() ? seconds.front() : ordered_json();
  }
  if (!facts.knows_ranks()) {
    const Bounds stored = bounds_of(facts.possible, &config::PlannedSizes::stored);
    for (const bool most : {false, true}) {
      ordered_json& end = out["bounds"][most ? "most" : "least"];
      end["stored"] = static_cast<std::int64_t>(most ? stored.most : stored.least);
      end["traffic"] = extreme(traffic, most);
      if (request) {
        end["seconds"] = extreme(seconds, most);
      }
    }
  }
  return out;
}

Outline outline_of(const config::RunOptions& options, const std::optional<TimeRequest>& request) {
  const Facts facts = facts_of(options);
  const auto bytes = [&](const config::PlannedSizes& planned) {
    return planned_bytes(options, planned.sizes, facts.length);
  };
  Outline out{
      .steps = facts.length.steps,
      .bytes = bounds_of(facts.possible, bytes),
      .stored = bounds_of(facts.possible, &config::PlannedSizes::stored),
      .estimated = facts.is_estimate(),
      .memory = config::state_bytes(options, facts.trained),
      .warnings = facts.notes};
  if (request) {
    const std::vector<TimePlan> times = times_of(options, facts, *request);
    out.train = bounds_of(times, &TimePlan::train);
    out.communication = bounds_of(times, &TimePlan::communication);
  }
  return out;
}

}  // namespace abtrain::plan
