#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "report/run_record.h"

namespace abtrain::report {

namespace {

namespace fs = std::filesystem;

// A folder of run folders, or a folder of such folders.
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
std::vector<fs::path> runs_below(const fs::path& path) {
  if (is_run(path)) {
    return {path};
  }
  constexpr auto kOptions = fs::directory_options::follow_directory_symlink |
                            fs::directory_options::skip_permission_denied;
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, kOptions, error), end; entry != end;
       entry.increment(error)) {
    if (entry.depth() + 1 == kLevels) {
      entry.disable_recursion_pending();
    }
    std::error_code ignored;
    if (entry->is_directory(ignored) && is_run(entry->path())) {
      runs.push_back(entry->path());
      entry.disable_recursion_pending();
    }
  }
  std::ranges::sort(runs);
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
    const auto runs = runs_below(path);
    if (runs.empty()) {
      found.without.push_back(path + kExpected);
    }
    for (const fs::path& run : runs) {
      if (known.insert(fs::canonical(run).string()).second) {
        found.folders.push_back(run.string());
      }
    }
  }
  return found;
}

}  // namespace abtrain::report
