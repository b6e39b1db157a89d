#include "plan/finished_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/interval.h"
#include "config/check_run.h"
#include "plan/planned_data.h"
#include "plan/traffic.h"

namespace abtrain::plan {

namespace {

using nlohmann::ordered_json;

// Keeps the products that plans compute within the range of an integer.
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

// A finished run with the figures that a plan needs, and the ranks that the run had.
struct FinishedRun {
  JsonObject summary;
  config::RunOptions options;
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
  o.train.seconds = 0;
  const data::DatasetShape shape = planned_data(o.data).shape;
  const RunLength length = config::check_run(o, shape, shape.train - o.data.validation);
  const std::map<std::string, std::int64_t> ranks = ranks_of(summary);
  auto planned = config::model_sizes(o, shape);
  if (!planned) {
    planned = config::model_sizes(o, shape, &ranks);
  }
  return {std::move(summary), std::move(o), length, planned->sizes};
}

}  // namespace

JsonObject read_summary(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  ABT_CHECK(
      std::filesystem::exists(path), MissingInput,
      "{}: expected the summary of a run that finished successfully", path);
  return JsonObject::of_file(path);
}

double seconds_over(
    const config::RunOptions& options, const std::string& folder, const Network& network) {
  const FinishedRun run = read_finished(options, folder);
  const double compute = run.seconds("compute") + run.seconds("data");
  const double each = compute / static_cast<double>(run.length.steps);
  const ComputeTime step{
      .dense = each, .ab = each, .workers = static_cast<int>(options.workers), .how = ""};
  const TimePlan plan = plan_time(run.options, run.sizes, run.length, network, step);
  // The ranks of a budget are estimates, so the run may have sent more or less than planned. The
  // difference comes from layers that were dense for a while, whose gradients all workers send.
  const double more = run.bytes() - planned_bytes(run.options, run.sizes, run.length);
  const double wire = wire_seconds(network, step.workers, std::abs(more));
  return compute + run.seconds("svd") +
         std::max(0.0, plan.communication + std::copysign(wire, more));
}

}  // namespace abtrain::plan
