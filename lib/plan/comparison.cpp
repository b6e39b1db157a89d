#include "plan/comparison.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/rows.h"
#include "config/check_run.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

using nlohmann::ordered_json;

// Keeps the products that plans form within the range of an integer.
constexpr std::int64_t kMostRank = 1 << 20;
// Plans loop over all steps, so their number is limited.
constexpr std::int64_t kMostSteps = 100'000'000;

std::map<std::string, std::int64_t> ranks_of(const JsonObject& summary) {
  std::map<std::string, std::int64_t> ranks;
  for (const ordered_json& layer : summary.list("/layers")) {
    const auto name = layer.find("name");
    const auto rank = layer.find("rank");
    std::string key;
    std::int64_t value = -1;
    if (name == layer.end() || rank == layer.end() || !read_json(*name, key) ||
        !read_json(*rank, value) || value < 0 || value > kMostRank) {
      summary.complain("/layers", "the name and rank of each layer");
    }
    ranks[key] = value;
  }
  return ranks;
}

}  // namespace

JsonObject read_summary(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  ABT_CHECK(
      std::filesystem::exists(path),
      MissingInput,
      "{}: expected the summary of a run that finished successfully",
      path);
  return JsonObject::of_file(path);
}

PlanComparison compare_with_run(
    const config::RunOptions& options,
    const std::string& folder,
    const TimeRequest& request) {
  const JsonObject summary = read_summary(folder);
  PlanComparison result;
  config::RunOptions o = options;
  o.train.steps = summary.integer("/steps", 1, kMostSteps);
  const data::DatasetShape set = planned_data(o.data).shape;
  const nn::InputShape shape = config::input_shape(set);
  const RunLength length =
      config::check_run(o, shape, set.train - o.data.validation);
  const std::map<std::string, std::int64_t> ranks = ranks_of(summary);
  auto planned = config::model_sizes(o, shape);
  if (!planned) {
    planned = config::model_sizes(o, shape, &ranks);
  }
  const methods::ModelSizes& sizes = planned->sizes;
  const ComputeTime compute = compute_time(o, set, sizes, request);
  const TimePlan time = plan_time(o, sizes, length, request.network, compute);

  const auto of = [&](const char* key) {
    return summary.number(formatted("/seconds/{}", key).c_str());
  };
  const auto steps = static_cast<double>(length.steps);
  const double svd = time.train - time.communication - time.compute;
  result.run = formatted(
      "{}: {}, {} workers, {} steps",
      folder,
      o.method.name,
      o.workers,
      length.steps);
  result.network = network_text(request.network, compute);
  result.rows = {
      {"bytes per worker",
       "bytes_per_worker",
       planned_bytes(o, sizes, length),
       summary.number("/traffic/bytes_per_worker")},
      {"ms per step",
       "ms_per_step",
       1e3 * time.train / steps,
       1e3 * of("train") / steps},
      {"seconds of training", "train", time.train, of("train")},
      {"  computing", "compute", time.compute, of("compute") + of("data")},
      {"  communicating",
       "communication",
       time.communication,
       of("communication")},
      {"  decomposing", "svd", svd, of("svd")}};
  return result;
}

std::string comparison_text(const PlanComparison& plan) {
  std::string out = formatted(
      "{}\n{}\n\n{:<22}{:>18}{:>18}{:>9}\n",
      plan.run,
      plan.network,
      "",
      "planned",
      "measured",
      "ratio");
  for (const PlanComparison::Row& r : plan.rows) {
    const auto shown = [&](double value) {
      return r.key == "bytes_per_worker"
                 ? with_commas(static_cast<std::int64_t>(value))
                 : formatted("{:.2f}", value);
    };
    out += formatted(
        "{}{:>18}{:>18}{:>9}\n",
        pad(r.name, 22),
        shown(r.planned),
        shown(r.measured),
        r.measured > 0 ? formatted("{:.3f}", r.planned / r.measured) : "-");
  }
  return out;
}

nlohmann::ordered_json comparison_json(const PlanComparison& plan) {
  nlohmann::ordered_json out = {{"run", plan.run}, {"network", plan.network}};
  for (const PlanComparison::Row& r : plan.rows) {
    out[r.key] = {
        {"planned", r.planned},
        {"measured", r.measured},
        {"ratio",
         r.measured > 0 ? nlohmann::ordered_json(r.planned / r.measured)
                        : nlohmann::ordered_json(nullptr)}};
  }
  return out;
}

}  // namespace abtrain::plan
