// Trains one run in this process, alone or as one of a launcher's processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/log.h"
#include "comm/launch.h"
#include "commands.h"
#include "config/run_options.h"

namespace abtrain::app {

// Adds --rank, --processes and the related options, in a group of their own.
void add_launch_options(CLI::App& command, comm::LaunchFlags& flags);

// How a run starts.
struct Start {
  std::string resume = "none";  // see train/resume.h
  bool overwrite = false;
  // Whether `output` and the run folder are removed when the run ends, however
  // it does.
  bool leaves_nothing = false;
};

// Returns the configuration to train. Gets the number of processes that a
// launcher started (0: none), and a log for what it has to say.
using ReadOptions =
    std::function<config::RunOptions(std::int64_t launched, Log& log)>;

// Trains the configuration that `read` returns, and prints the report. Returns
// the exit code.
int train_here(
    const comm::LaunchFlags& flags,
    const Start& start,
    const ReadOptions& read);

// Trains all points of a sweep file, one at a time, and prints the report, as
// `abtrain sweep FILE` does. Returns the exit code.
int train_sweep(const std::string& file);

}  // namespace abtrain::app
