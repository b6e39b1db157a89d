// What in a `reducer:` section does not go together.
#pragma once

#include <string>
#include <vector>

#include "compress/reducer_options.h"

namespace abtrain::compress {

struct ReducerConflict {
  std::vector<std::string> keys;  // of the section; the first is to blame
  std::string message;
};

// `members`: of the largest group that such a reducer serves.
std::vector<ReducerConflict> check(
    const ReducerOptions& options, std::int64_t members);

}  // namespace abtrain::compress
