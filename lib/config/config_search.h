// The search for a configuration by its name. Internal to config/config*.
#pragma once

#include <string>
#include <vector>

namespace abtrain::config {

struct ConfigSearch {
  std::string found;    // empty: not found
  std::string problem;  // if not found: a message that names all places
};

// Looks for a file of this name, with or without ".yaml", in the folder `first`
// ("" stands for the current one), then in `folders`.
ConfigSearch search_config(
    const std::string& name, const std::string& first, const std::vector<std::string>& folders);

}  // namespace abtrain::config
