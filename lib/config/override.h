// One key of a configuration set to a value that knows where it was written: a
// `--set`, or a point of a sweep.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

struct Override {
  std::string key;  // "train.steps"
  Place place;      // what a message about it points at
  Value value;
};

// "a.b=VALUE", VALUE being YAML on one line. `option` is what messages call it:
// "--set". Problems are appended; the key is empty then.
Override parse_override(
    const std::string& text,
    const std::string& option,
    std::vector<Problem>& problems);

// The section that it would be in a file: {a: {b: VALUE}}.
Value as_section(const Override& override);

}  // namespace abtrain::config
