#include "plan/plan.h"

#include "config/check_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/rows.h"
#include "config/config.h"
#include "config/run_notes.h"
#include "data/dataset.h"
#include "device/devices.h"
#include "methods/ab/decompose.h"
#include "methods/method_kind.h"
#include "plan/traffic.h"
#include "train/trainer.h"

namespace abtrain::plan {

namespace {

std::string layers_text(
    const nn::Model& model,
    const config::RunOptions& options,
    const std::optional<config::PlannedSizes>& planned) {
  std::vector<nn::NamedWeight> factorable;
  if (methods::kind_of(options.method).factors_weights) {
    factorable = methods::factorable_weights(model, options.method);
  }
  std::string out = formatted(
      "\nlayers\n  {:<22}{:>7}{:>7}{:>9}{:>12}{:>12}\n",
      "name",
      "m",
      "n",
      "rank",
      "dense",
      "stored");
  for (const nn::NamedWeight& w : model.weights()) {
    const auto place = std::find_if(
        factorable.begin(), factorable.end(), [&](const nn::NamedWeight& f) {
          return f.weight == w.weight;
        });
    const std::int64_t m = w.weight->m();
    const std::int64_t n = w.weight->n();
    std::string rank = "dense";
    std::string stored = with_commas(m * n);
    if (place != factorable.end() && !planned) {
      rank = "spectrum";
      stored = "?";
    } else if (place != factorable.end()) {
      const auto index = static_cast<std::size_t>(place - factorable.begin());
      const std::int64_t r = planned->sizes.layers[index].rank;
      if (r > 0) {
        const std::string about = planned->estimated ? "~" : "";
        rank = formatted("{}{}", about, r);
        stored = about + with_commas(r * (m + n));
      }
    }
    out += formatted(
        "  {}{:>7}{:>7}{:>9}{:>12}{:>12}\n",
        pad(w.layer, 22),
        m,
        n,
        rank,
        with_commas(m * n),
        stored);
  }
  return out;
}

}  // namespace

ComputeTime compute_time(
    const config::RunOptions& options,
    const data::DatasetShape& shape,
    const methods::ModelSizes& sizes,
    const TimeRequest& request) {
  const auto workers = static_cast<int>(options.workers);
  ABT_CHECK(
      request.network.nodes >= 1 && workers % request.network.nodes == 0,
      Usage,
      "--nodes: expected a divisor of the {} workers; got {}",
      workers,
      request.network.nodes);
  if (request.compute) {
    return *request.compute;
  }
  // A worker on a GPU has that GPU to itself.
  const int per_node = device::pick_device(options.device).is_cuda()
                           ? 1
                           : workers / request.network.nodes;
  return measure_compute(
      options,
      shape,
      sizes,
      request.workers_here > 0 ? request.workers_here : per_node);
}

std::string plan_text(
    const config::RunOptions& options,
    const std::optional<TimeRequest>& request) {
  const data::DatasetShape set = data::dataset_shape(options.data);
  const nn::InputShape shape = config::input_shape(set);
  const auto model = nn::make_model(options.model, shape);
  const RunLength length =
      config::check_run(options, shape, set.train - options.data.validation);
  const auto planned = config::model_sizes(options, shape);
  const std::int64_t dense = model->dense_parameters();

  std::string out = config::to_yaml(options);
  out += "\nplan\n";
  out += row(
      "data",
      formatted(
          "{}, {} training and {} test {} of {}",
          options.data.name,
          with_commas(set.train - options.data.validation),
          with_commas(set.test),
          data::examples_of(options.data),
          set.context > 0
              ? formatted("{} tokens", set.context)
              : formatted("{}x{}x{}", set.channels, set.height, set.width)));
  out += row(
      "steps",
      formatted(
          "{}, {} per epoch, {} {} each",
          with_commas(length.steps),
          with_commas(length.steps_per_epoch),
          options.workers * options.data.batch_size * options.train.accumulate,
          data::examples_of(options.data)));
  out += row("workers", std::to_string(options.workers));
  const methods::MethodKind& kind = methods::kind_of(options.method);
  if (kind.plan_text != nullptr) {
    out += kind.plan_text(config::method_setup(options), length);
  }
  out += row("parameters", with_commas(dense));
  if (kind.factors_weights && planned) {
    const auto ratio =
        static_cast<double>(dense) / static_cast<double>(planned->stored);
    out +=
        row("stored",
            formatted("{}, {:.2f}:1", with_commas(planned->stored), ratio));
  }
  out +=
      row("memory per worker",
          formatted(
              "{} for parameters, gradients and moments in a dense step",
              human_bytes(state_bytes(options, dense))));
  out += layers_text(*model, options, planned);
  if (planned) {
    out += traffic_text(options, planned->sizes, length);
    if (planned->estimated) {
      out +=
          "  ~ the budget rule distributes the ranks by the spectra; shown "
          "here with every layer at the same ratio\n";
    }
  } else {
    out +=
        "\ntraffic\n  depends on the ranks, which this rule takes from the "
        "spectra at each decomposition\n";
  }
  const std::vector<std::string> notes = config::run_notes(options, length);
  if (!notes.empty()) {
    out += "\nwarnings\n  " + join(notes, "\n  ") + "\n";
  }
  if (request) {
    ABT_CHECK(
        planned,
        Config,
        "method.rank.rule: the ranks of this rule follow from the spectra, so "
        "the time cannot be planned; expected fixed, fraction, ratio or "
        "budget, or a run to take the ranks from (--against)");
    const ComputeTime compute =
        compute_time(options, set, planned->sizes, *request);
    out += time_text(
        options,
        length,
        request->network,
        compute,
        plan_time(options, planned->sizes, length, request->network, compute));
  }
  return out;
}

}  // namespace abtrain::plan
