// Trains one run in this process, alone or as one of a launcher's processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/log.h"
#include "comm/launch.h"
#include "commands.h"
#include "config/run_options.h"
#include "train/session.h"

namespace abtrain::app {

// Adds --rank, --processes and the related options, in a group of their own.
void add_launch_options(CLI::App& command, comm::LaunchFlags& flags);

// Returns the configuration to train. Gets the number of processes that a
// launcher started (0: none), and a log for what it has to say.
using ReadOptions = std::function<config::RunOptions(std::int64_t launched, Log& log)>;

// Trains the configuration that `read` returns, and prints the report. Returns
// the exit code. `session`: all but the host, the watch and the hooks.
int train_here(
    const comm::LaunchFlags& flags, train::SessionOptions session, const ReadOptions& read);

// Trains all points of a sweep file, one at a time, and prints the report, as
// `abtrain sweep FILE` does. Returns the exit code.
int train_sweep(const std::string& file);

}  // namespace abtrain::app
