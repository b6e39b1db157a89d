// Formats a comparison as text: tables and Markdown with rounded figures and the best ones marked;
// CSV and JSON in full precision and SI units, with shares from 0 to 1.
#pragma once

#include <string>
#include <vector>

#include "report/columns.h"
#include "report/compare.h"

namespace abtrain::report {

// The best cell of a column gets a star, and is printed bold if `bold` is set. The comparison's
// verdict and tuning follow the table, in Markdown too.
std::string as_table(const Comparison& comparison, const std::vector<Column>& columns, bool bold);

std::string as_markdown(const Comparison& comparison, const std::vector<Column>& columns);

// CSV as in RFC 4180 (base/machine_text.h). The fields are name, runs,
// finished, the traits, then KEY and KEY_sd for each column, then the
// configuration keys that differ. A target that was not reached is "inf".
std::string as_csv(const Comparison& comparison, const std::vector<Column>& columns);

// A target that was not reached is null. "verdict" is present if a column marks the front, "tuning"
// if the comparison has a Tuning.
std::string as_json(const Comparison& comparison, const std::vector<Column>& columns);

// A sentence about the settings in which workers lacked cores because of other programs; "" if
// there are none.
std::string note_on_cores(const std::vector<Setting>& settings);
// One line for each run that has not finished: its folder, how far it got and why it ended.
std::vector<std::string> unfinished_runs(const Comparison& comparison);

}  // namespace abtrain::report
