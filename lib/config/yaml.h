// YAML text to a tree of values that know their place.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"

namespace abtrain::config {

// One document. `source` is what messages call it; `has_lines` is false for an
// option of the command line, whose problems carry no line. Problems (syntax,
// bytes that are no UTF-8, tabs as indentation, tags, aliases, merge keys, more
// bytes, values or depth than a person writes) are appended; after one of the
// syntax the value is Invalid. An empty document is Nothing.
Value parse_yaml(
    const std::string& text,
    const std::string& source,
    bool has_lines,
    std::vector<Problem>& problems);

}  // namespace abtrain::config
