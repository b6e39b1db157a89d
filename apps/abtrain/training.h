// Trains one run in this process, alone or as one of a launcher's processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/launch.h"
#include "commands.h"
#include "config/run_options.h"

namespace abtrain::app {

// Adds --rank, --processes and the related options, in a group of their own.
void add_launch_options(CLI::App& command, comm::LaunchFlags& flags);

// Trains the configuration that `read` returns, and prints the report. `read`
// gets the number of processes that a launcher started (0: none). `resume` and
// `overwrite`: see train/resume.h. Returns the exit code.
int train_here(
    const comm::LaunchFlags& flags,
    const std::string& resume,
    bool overwrite,
    const std::function<config::RunOptions(std::int64_t launched)>& read);

}  // namespace abtrain::app
