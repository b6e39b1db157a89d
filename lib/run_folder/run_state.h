// The outcome of a run, according to its folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace abtrain::run_folder {

enum class RunState {
  Finished,  // it has written summary.json
  Running,   // a process holds its lock
  Failed,    // it has written failure.json
  Killed,    // its lock file exists, but nobody holds the lock
  Stopped,   // it released its lock before it had finished
};

// "finished"
const char* name_of(RunState state);

struct RunStatus {
  RunState state = RunState::Finished;
  // The process that holds or held the lock, or why the run has failed; "" for a run that has
  // finished or was stopped.
  std::string about = {};
  // From failure.json, if the run has failed. A damaged file gives 0 and nullopt.
  int exit_code = 0;
  std::optional<std::int64_t> step = {};
};

// If the file system has no locks, a lock file counts as held. Throws Error if the lock file cannot
// be read.
RunStatus status_of(const std::string& folder);

}  // namespace abtrain::run_folder
