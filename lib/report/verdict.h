// A comparison in words: which setting wins within each budget of bytes and of stored parameters,
// which settings are dominated, and where AB-training stands.
//
// A setting with a diverged run competes for nothing; a sentence says so.
//
// If the seeds do not separate two settings (is_better()), the verdict says so, and how large a gap
// the test could have found (welch.h). If a setting has fewer than two finished runs, the mean
// decides. Runs on different data do not compete.
#pragma once

#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// A setting may take this many times the seconds that were asked for.
inline constexpr double kInTime = 1.05;

// Returns lines of whole sentences; names are safe to show. Data sets with fewer than two finished
// settings give no lines. With `seconds`, a setting that took longer (kInTime) competes for
// nothing.
std::vector<std::string> verdict(const std::vector<Setting>& settings, double seconds = 0);

// Says in one line which setting that trained for at most `seconds` (plus 5 %) is best, and by how
// much; with 0 seconds, it compares settings that all trained the same number of steps. `where`:
// what the seconds were measured on. `is_partial`: usual rivals did not run, which the line then
// says. Returns "" if there are several data sets, if no setting has finished or diverged, or, with
// 0 seconds, if the numbers of steps differ.
std::string best_within(
    const std::vector<Setting>& settings, double seconds, const std::string& where,
    bool is_partial = false);

}  // namespace abtrain::report
