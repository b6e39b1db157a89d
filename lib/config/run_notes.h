// Notes on settings that are allowed but probably a mistake, because they never take effect in a
// run of this length.
#pragma once

#include <string>
#include <vector>

#include "config/run_length.h"
#include "config/run_options.h"

namespace abtrain::config {

// Returns one sentence per note, which begins with the key. The options must have passed
// check_run().
std::vector<std::string> run_notes(const RunOptions& options, const RunLength& length);

}  // namespace abtrain::config
