// Which runs are compared, and in which order (`report --where`, `--sort`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// Parses "a.b=VALUE", where the key is any key of the configuration and VALUE
// is YAML, as in --set. A section is a condition for each key in it. Throws
// LocatedError(Usage) that names all problems.
std::vector<Condition> read_conditions(const std::vector<std::string>& texts);

// Keeps the runs that have, for each key, one of the values that are asked for.
// Throws Error(MissingInput), with the values that there are, if none is left.
void keep_matching(std::vector<RunRecord>& runs, const std::vector<Condition>& where);

// The keys that sort_settings() takes: "name", those of the traits and of the
// columns.
std::vector<std::string> sort_keys();

// Sorts by a trait, or by a column with its best value first. What has no value
// comes last; equal settings keep their order. Throws Error(Usage) if the
// column needs a target and there is none.
void sort_settings(Comparison& comparison, const std::string& key);

}  // namespace abtrain::report
