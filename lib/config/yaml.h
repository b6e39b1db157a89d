// Parses YAML text into a tree of values that know their place.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

// Parses one document. `source` is its name in messages; `has_lines` is false
// for a command-line option, whose problems carry no line. Problems (syntax
// errors, bytes that are not UTF-8, tabs as indentation, tags, aliases, merge
// keys, more bytes, values or depth than a person writes) are appended; after a
// syntax error the value is Invalid. An empty document is Nothing.
Value parse_yaml(
    const std::string& text, const std::string& source, bool has_lines,
    std::vector<Problem>& problems);

}  // namespace abtrain::config
