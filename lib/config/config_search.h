// The search for a configuration by its name. Internal to config/config*.
#pragma once

#include <string>
#include <vector>

namespace abtrain::config {

struct ConfigSearch {
  std::string found;  // empty: not found
  std::vector<std::string> looked_at;
  std::string meant;  // an existing file with a similar name
};

// Looks for a file of this name, with or without ".yaml", in the folder `first`
// ("" stands for the current one), then in `folders`.
ConfigSearch search_config(
    const std::string& name, const std::string& first, const std::vector<std::string>& folders);

// The message about a search that has found nothing.
std::string not_found(const std::string& name, const ConfigSearch& search);

}  // namespace abtrain::config
