// One run in this process, alone or as one of a launcher's processes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/launch.h"
#include "commands.h"
#include "config/run_options.h"

namespace abtrain::app {

// --rank, --processes and their kin, in a group of their own.
void add_launch_options(CLI::App& command, comm::LaunchFlags& flags);

// Trains what `read` returns, which is told how many processes a launcher has
// started (0: none), and prints the report. `resume`, `overwrite`: see
// train/resume.h.
int train_here(
    const comm::LaunchFlags& flags,
    const std::string& resume,
    bool overwrite,
    const std::function<config::RunOptions(std::int64_t launched)>& read);

}  // namespace abtrain::app
