// Checks that no single key can make: keys that conflict with each other.
#pragma once

#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::config {

struct Conflict {
  std::vector<std::string> keys;  // those involved, the one at fault first
  std::string message;
};

// All conflicts among the keys that the chosen method uses. Pure: depends on
// nothing but the options.
std::vector<Conflict> check(const RunOptions& options);

}  // namespace abtrain::config
