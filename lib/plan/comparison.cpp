#include "plan/comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/interval.h"
#include "base/rows.h"
#include "config/check_run.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

using nlohmann::ordered_json;

// Keeps the products that plans form within the range of an integer.
constexpr std::int64_t kMaxRank = 1 << 20;

std::map<std::string, std::int64_t> ranks_of(const JsonObject& summary) {
  constexpr auto kWanted = "the name and rank of each layer";
  std::map<std::string, std::int64_t> ranks;
  for (const ordered_json& layer : summary.list("/layers")) {
    const auto rank = summary.member<std::int64_t>(layer, "rank", "/layers", kWanted);
    if (rank < 0 || rank > kMaxRank) {
      summary.complain("/layers", kWanted);
    }
    ranks[summary.member<std::string>(layer, "name", "/layers", kWanted)] = rank;
  }
  return ranks;
}

// A finished run as it would be planned, with the ranks that it had.
struct FinishedRun {
  JsonObject summary;
  config::RunOptions options;
  data::DatasetShape set;
  RunLength length;
  methods::ModelSizes sizes;

  double seconds(const char* key) const {
    return summary.number(formatted("/seconds/{}", key).c_str());
  }
  double bytes() const {
    return summary.number("/traffic/bytes_per_worker");
  }
};

FinishedRun read_finished(const config::RunOptions& options, const std::string& folder) {
  JsonObject summary = read_summary(folder);
  config::RunOptions o = options;
  o.train.steps = summary.integer("/steps", 1, static_cast<std::int64_t>(kMaxSteps));
  data::DatasetShape set = planned_data(o.data).shape;
  const data::ExampleShape& shape = set;
  const RunLength length = config::check_run(o, shape, set.train - o.data.validation);
  const std::map<std::string, std::int64_t> ranks = ranks_of(summary);
  auto planned = config::model_sizes(o, shape);
  if (!planned) {
    planned = config::model_sizes(o, shape, &ranks);
  }
  return {std::move(summary), std::move(o), std::move(set), length, planned->sizes};
}

}  // namespace

JsonObject read_summary(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  ABT_CHECK(
      std::filesystem::exists(path), MissingInput,
      "{}: expected the summary of a run that finished successfully", path);
  return JsonObject::of_file(path);
}

PlanComparison compare_with_run(
    const config::RunOptions& options, const std::string& folder, const TimeRequest& request) {
  const FinishedRun run = read_finished(options, folder);
  const config::RunOptions& o = run.options;
  const TimePlan time = time_of(o, run.set, run.sizes, run.length, request);
  const auto steps = static_cast<double>(run.length.steps);
  const double svd = time.train - time.communication - time.compute;
  return {
      formatted("{}: {}, {} workers, {} steps", folder, o.method.name, o.workers, run.length.steps),
      network_text(request.network, time.measured),
      {{"bytes per worker", "bytes_per_worker", planned_bytes(o, run.sizes, run.length),
        run.bytes()},
       {"ms per step", "ms_per_step", 1e3 * time.train / steps, 1e3 * run.seconds("train") / steps},
       {"seconds of training", "train", time.train, run.seconds("train")},
       {"  computing", "compute", time.compute, run.seconds("compute") + run.seconds("data")},
       {"  communicating", "communication", time.communication, run.seconds("communication")},
       {"  decomposing", "svd", svd, run.seconds("svd")}}};
}

double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network) {
  const FinishedRun run = read_finished(options, folder);
  const double compute = run.seconds("compute") + run.seconds("data");
  const double each = compute / static_cast<double>(run.length.steps);
  const ComputeTime step{
      .dense = each, .ab = each, .workers = static_cast<int>(options.workers), .how = ""};
  const TimePlan plan = plan_time(run.options, run.sizes, run.length, network, step);
  // What was sent beside the plan, because the ranks of a budget were estimated, is
  // what all workers send alike: layers that were dense for a while.
  const double more = run.bytes() - planned_bytes(run.options, run.sizes, run.length);
  const double wire = wire_seconds(network, step.workers, std::abs(more));
  return compute + run.seconds("svd") +
         std::max(0.0, plan.communication + std::copysign(wire, more));
}

std::string comparison_text(const PlanComparison& plan) {
  std::string out = formatted(
      "{}\n{}\n\n{:<22}{:>18}{:>18}{:>9}\n", plan.run, plan.network, "", "planned", "measured",
      "ratio");
  for (const PlanComparison::Row& r : plan.rows) {
    const auto shown = [&](double value) {
      return r.key == "bytes_per_worker" ? with_commas(static_cast<std::int64_t>(value))
                                         : formatted("{:.2f}", value);
    };
    out += formatted(
        "{}{:>18}{:>18}{:>9}\n", pad(r.name, 22), shown(r.planned), shown(r.measured),
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
        {"ratio", ratio_or_null(r.planned, r.measured)}};
  }
  return out;
}

}  // namespace abtrain::plan
