// Parses YAML text into a tree of values with their locations.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

// Parses one document. `source`: its name in messages. `has_lines`: false for a command-line
// option, to give problems no line. Appends to `problems`: syntax errors, bytes that are not UTF-8,
// tabs as indentation, tags, aliases, merge keys, and more bytes, values or depth than a person
// writes. After a syntax error the value is Invalid. An empty document is Nothing.
Value parse_yaml(
    const std::string& text, const std::string& source, bool has_lines,
    std::vector<Problem>& problems);

}  // namespace abtrain::config
