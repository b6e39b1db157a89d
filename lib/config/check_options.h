// Checks a configuration for conflicts between its keys.
#pragma once

#include "base/conflict.h"
#include "config/run_options.h"

namespace abtrain::config {

// All conflicts among the keys that the chosen method uses. Pure: depends on
// nothing but the options.
Conflicts check(const RunOptions& options);

}  // namespace abtrain::config
