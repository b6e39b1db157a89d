// Parses YAML text into a tree of values with their locations.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

// Parses one document. `source`: its name in messages. `has_lines`: false for a command-line
// option, so that problems show no line number. Appends to `problems`: syntax errors, bytes that
// are not UTF-8, control characters, tabs as indentation, tags, aliases, merge keys, and documents
// that are too long, too deep or have too many values. After a syntax error the value is Invalid.
// An empty document is Nothing.
Value parse_yaml(
    const std::string& text, const std::string& source, bool has_lines,
    std::vector<Problem>& problems);

}  // namespace abtrain::config
