#include "sweep/point_state.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "run/config.h"

namespace abtrain::sweep {

const char* name_of(PointState state) {
  switch (state) {
    case PointState::Missing:
      return "missing";
    case PointState::Started:
      return "started";
    case PointState::Failed:
      return "failed";
    case PointState::Finished:
      break;
  }
  return "finished";
}

PointState state_of(const PointRun& run) {
  const auto has = [&](const char* file) {
    return std::filesystem::exists(run.folder + file);
  };
  const std::string config = run.folder + "/config.yaml";
  if (!has("/config.yaml")) {
    return PointState::Missing;
  }
  ABT_CHECK(
      content_of(run::read_config(config)) == content_of(run.options),
      Config,
      config,
      " is not the configuration of this point: it was changed after the run "
      "began. Move the folder away, or give the sweep another name");
  return has("/summary.json")   ? PointState::Finished
         : has("/failure.json") ? PointState::Failed
                                : PointState::Started;
}

double accuracy_of(const PointRun& run) {
  const std::string path = run.folder + "/summary.json";
  const auto summary = nlohmann::json::parse(
      read_file(path), nullptr, /*allow_exceptions=*/false);
  ABT_CHECK(
      summary.is_object() && summary.contains("accuracy") &&
          summary["accuracy"].is_number(),
      DamagedData,
      path,
      ": expected a JSON object with accuracy, this is damaged or cut off");
  return summary["accuracy"];
}

}  // namespace abtrain::sweep
