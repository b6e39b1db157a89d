#include "sweep/point_state.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/json.h"
#include "config/config.h"
#include "report/run_record.h"
#include "train/branch.h"
#include "train/run_differences.h"

namespace abtrain::sweep {

const char* name_of(PointState state) {
  constexpr std::array kNames{"missing", "started", "failed", "finished", "foreign"};
  return kNames[static_cast<std::size_t>(state)];
}

PointState state_of(const PointRun& run) {
  const auto has = [&](const char* file) {
    std::error_code error;
    const bool is_there = std::filesystem::exists(run.folder + file, error);
    ABT_CHECK(!error, Io, "cannot read '{}{}': {}", run.folder, file, error.message());
    return is_there;
  };
  if (!has("/config.yaml")) {
    return PointState::Missing;
  }
  try {
    const config::RunOptions before = config::read_config(run.folder + "/config.yaml");
    config::RunOptions now = run.options;
    train::take_recorded(now, before);
    train::keep_branch_point(now, run.folder);
    if (content_of(before) != content_of(now)) {
      return PointState::Foreign;
    }
  } catch (const LocatedError&) {
    return PointState::Foreign;
  }
  return has("/summary.json")   ? PointState::Finished
         : has("/failure.json") ? PointState::Failed
                                : PointState::Started;
}

bool has_diverged(const PointRun& run) {
  return JsonObject::of_file(run.folder + "/failure.json").integer("/exit_code", 0, 255) ==
         static_cast<int>(ErrorKind::Diverged);
}

PointState own_state_of(const PointRun& run) {
  const PointState state = state_of(run);
  ABT_CHECK(
      state != PointState::Foreign, Config,
      "{}/config.yaml is not the configuration of this point: the sweep or this file has changed "
      "since the run began. Move the folder away, or give the sweep another "
      "name",
      run.folder);
  return state;
}

std::string score_of(const PointRun& run) {
  return report::score_of(JsonObject::of_file(run.folder + "/summary.json")).text();
}

}  // namespace abtrain::sweep
