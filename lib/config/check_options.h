// What no single key can tell: keys that do not go together.
#pragma once

#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::config {

struct Conflict {
  std::vector<std::string> keys;  // that take part, the one at fault first
  std::string message;
};

// All conflicts among the keys that the chosen method uses. Pure: it looks at
// nothing but the options.
std::vector<Conflict> check(const RunOptions& options);

}  // namespace abtrain::config
