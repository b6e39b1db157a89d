// A comparison as text: for people (table, markdown) with rounded figures and
// the best marked; for machines (csv, json) in full precision and SI units,
// shares from 0 to 1.
#pragma once

#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

// The best of a column has a star; it is bold where `bold` is set.
std::string as_table(
    const Comparison& comparison,
    const std::vector<Column>& columns,
    bool bold);

std::string as_markdown(
    const Comparison& comparison,
    const std::vector<Column>& columns);

// RFC 4180. Columns: name, runs, finished, a KEY and a KEY_sd each, and the
// configuration's keys that differ. What was not reached is "inf".
std::string as_csv(
    const Comparison& comparison,
    const std::vector<Column>& columns);

// What was not reached is null.
std::string as_json(
    const Comparison& comparison,
    const std::vector<Column>& columns);

// One line for each run that has not ended well: its folder and why.
std::vector<std::string> unfinished_runs(const Comparison& comparison);

}  // namespace abtrain::report
