// Selects the runs to compare, and sorts the settings (`report --where`, `--sort`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// Parses "a.b=VALUE", with any key of the configuration and a YAML value, as in --set. A section
// becomes a condition for each key in it. Throws LocatedError(Usage) that names all problems.
std::vector<Condition> read_conditions(const std::vector<std::string>& texts);

// Keeps the runs that have one of the requested values for each key. Throws Error(MissingInput),
// listing the existing values, if none is left.
void keep_matching(std::vector<RunRecord>& runs, const std::vector<Condition>& where);

// The keys that sort_settings() accepts: "name", and the keys of the traits and the columns.
std::vector<std::string> sort_keys();

// Sorts by a trait, or by a column with its best value first. Settings without a value come last;
// equal settings keep their order. Throws Error(Usage) if the column needs a target and there is
// none.
void sort_settings(Comparison& comparison, const std::string& key);

}  // namespace abtrain::report
