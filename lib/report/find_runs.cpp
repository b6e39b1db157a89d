#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "report/run_record.h"

namespace abtrain::report {

namespace {

namespace fs = std::filesystem;

constexpr int kLevels = 2;

// True if the folder has one of a run's files, or is still empty.
bool is_run(const fs::path& path) {
  constexpr std::array kFiles = {"config.yaml", "metrics.jsonl", "summary.json", "failure.json"};
  std::error_code error;
  return std::ranges::any_of(
             kFiles, [&](const char* file) { return fs::exists(path / file, error); }) ||
         (fs::is_directory(path, error) && fs::is_empty(path, error));
}

// The run folders at or below `path`, sorted by name.
std::vector<fs::path> runs_below(const fs::path& path, int levels) {
  if (is_run(path)) {
    return {path};
  }
  std::vector<fs::path> runs;
  if (levels == 0) {
    return runs;
  }
  for (const fs::path& entry : list_folder(path)) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored)) {
      std::ranges::copy(runs_below(entry, levels - 1), std::back_inserter(runs));
    }
  }
  return runs;
}

}  // namespace

FoundRuns find_runs(const std::vector<std::string>& paths) {
  FoundRuns found;
  std::set<std::string> known;
  constexpr const char* kExpected =
      ": expected a run folder, with config.yaml and metrics.jsonl, or a "
      "folder that holds run folders";
  for (const std::string& path : paths) {
    ABT_CHECK(fs::exists(path), MissingInput, "{}{}; it does not exist", path, kExpected);
    const auto runs = runs_below(path, kLevels);
    if (runs.empty()) {
      found.without.push_back(path + kExpected);
    }
    for (const fs::path& run : runs) {
      if (known.insert(real_path(run).string()).second) {
        found.folders.push_back(run.string());
      }
    }
  }
  return found;
}

}  // namespace abtrain::report
