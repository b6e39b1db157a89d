// One key of a configuration set to a value, with the place where it was
// written: a `--set`, or a point of a sweep.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

struct Override {
  std::string key;  // "train.steps"
  Location place;   // where messages about it point
  Value value;
};

// Parses "a.b=VALUE", where VALUE is YAML on one line. `option`: the option's name in messages,
// such as "--set". Problems are appended; if the key itself is malformed, it is empty in the
// result.
Override parse_override(
    const std::string& text, const std::string& option, std::vector<Problem>& problems);

// Makes an override whose value is the literal text, not YAML; used for --name.
Override literal_override(std::string key, std::string text, const Location& place);

// The value nested as it would be in a file: {a: {b: VALUE}}.
Value as_section(const Override& override);

}  // namespace abtrain::config
