// Finds conflicting options in a `reducer:` section.
#pragma once

#include <string>
#include <vector>

#include "base/conflict.h"
#include "compress/reducer_options.h"

namespace abtrain::compress {

struct ReducerConflict {
  std::vector<std::string> keys;  // of the section; the first is to blame
  std::string message;
};

// `members` is the size of the largest group that such a reducer serves.
std::vector<ReducerConflict> check(
    const ReducerOptions& options,
    std::int64_t members);
// The same with whole keys, those of this section, such as "reducer".
Conflicts check(
    const ReducerOptions& options,
    const std::string& section,
    std::int64_t members);

}  // namespace abtrain::compress
