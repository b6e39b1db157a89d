// What is allowed, but hardly meant: settings that never take effect in a run
// of this length, and cuts whose losses add up.
#pragma once

#include <string>
#include <vector>

#include "config/run_length.h"
#include "config/run_options.h"

namespace abtrain::config {

// One sentence each, which begins with its key. Of options that check_run()
// takes.
std::vector<std::string> run_notes(
    const RunOptions& options,
    const RunLength& length);

}  // namespace abtrain::config
