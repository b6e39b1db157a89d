#include "run/plan_against.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/dataset.h"
#include "run/plan_rows.h"
#include "run/plan_traffic.h"

namespace abtrain::run {

namespace {

using nlohmann::json;

json read_summary(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  ABT_CHECK(
      std::filesystem::exists(path),
      MissingInput,
      path,
      ": expected the summary of a run that has ended well");
  try {
    return json::parse(read_file(path));
  } catch (const json::exception&) {
    throw Error(
        ErrorKind::DamagedData,
        str(path, ": expected a JSON object, this is damaged or cut off"));
  }
}

}  // namespace

PlanAgainst plan_against(
    const RunOptions& options,
    const std::string& folder,
    const TimeRequest& request) {
  const json summary = read_summary(folder);
  PlanAgainst result;
  try {
    RunOptions o = options;
    o.train.steps = summary.at("steps").get<std::int64_t>();
    const data::DatasetShape set = data::dataset_shape(o.data);
    const nn::InputShape shape{
        set.channels, set.height, set.width, set.classes};
    const RunLength length = check_run(o, shape, set.train - o.data.validation);
    std::map<std::string, std::int64_t> ranks;
    for (const json& layer : summary.at("layers")) {
      ranks[layer.at("name").get<std::string>()] =
          layer.at("rank").get<std::int64_t>();
    }
    const bool ab = o.method.name == "ab";
    auto planned = model_sizes(o, shape);
    if (!planned) {
      planned = model_sizes(o, shape, ab ? &ranks : nullptr);
    }
    const methods::ModelSizes& sizes = planned->sizes;
    const ComputeTime compute = compute_time(o, set, sizes, request);
    const TimePlan time = plan_time(o, sizes, length, request.network, compute);

    const json& seconds = summary.at("seconds");
    const auto of = [&](const char* key) {
      return seconds.at(key).get<double>();
    };
    const auto steps = static_cast<double>(length.steps);
    const double svd = time.train - time.communication - time.compute;
    result.run =
        str(folder,
            ": ",
            o.method.name,
            ", ",
            o.workers,
            " workers, ",
            length.steps,
            " steps");
    result.network = network_text(request.network, compute);
    result.rows = {
        {"bytes a worker",
         "bytes_per_worker",
         planned_bytes(o, sizes, length),
         summary.at("traffic").at("bytes_per_worker").get<double>()},
        {"ms a step",
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
  } catch (const json::exception& error) {
    throw Error(
        ErrorKind::DamagedData, str(folder, "/summary.json: ", error.what()));
  }
  return result;
}

std::string against_text(const PlanAgainst& plan) {
  std::string out = plan.run + "\n" + plan.network + "\n\n" + pad("", 22) +
                    right("planned", 18) + right("measured", 18) +
                    right("ratio", 9) + "\n";
  for (const PlanAgainst::Row& r : plan.rows) {
    const auto shown = [&](double value) {
      return r.key == "bytes_per_worker"
                 ? with_commas(static_cast<std::int64_t>(value))
                 : fixed(value, 2);
    };
    out += pad(r.name, 22) + right(shown(r.planned), 18) +
           right(shown(r.measured), 18) +
           right(r.measured > 0 ? fixed(r.planned / r.measured, 3) : "-", 9) +
           "\n";
  }
  return out;
}

nlohmann::ordered_json against_json(const PlanAgainst& plan) {
  nlohmann::ordered_json out = {{"run", plan.run}, {"network", plan.network}};
  for (const PlanAgainst::Row& r : plan.rows) {
    out[r.key] = {
        {"planned", r.planned},
        {"measured", r.measured},
        {"ratio",
         r.measured > 0 ? nlohmann::ordered_json(r.planned / r.measured)
                        : nlohmann::ordered_json(nullptr)}};
  }
  return out;
}

}  // namespace abtrain::run
