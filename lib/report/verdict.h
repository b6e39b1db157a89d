// A comparison in words: which setting wins within each budget of bytes and of stored parameters,
// which settings are dominated, and where AB-training stands.
//
// A setting with a diverged run competes for nothing; a sentence says so.
//
// Settings are not separated if their seeds do not separate them (budgets.h); the verdict then
// states what gap could have been seen (welch.h). If a setting has fewer than two finished runs,
// the mean decides. Runs on different data do not compete.
#pragma once

#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// A setting that takes more than this many times the seconds of the question wins nothing.
inline constexpr double kInTime = 1.05;

// One line of whole sentences each; names are safe to show. Data sets with fewer than two finished
// settings give no lines. With `seconds`, a setting that took longer (kInTime) competes for
// nothing.
std::vector<std::string> verdict(const std::vector<Setting>& settings, double seconds = 0);

// In one line, which of the settings that trained for at most `seconds` (plus 5 %) is best, and by
// how much; with 0 seconds, of runs that trained equally many steps. `where`: what the seconds were
// measured on. `is_partial`: usual rivals did not run, and the line says so. "" if runs of several
// data sets, or of none, have finished, or if the runs did not all train the same number of steps
// when steps were asked for.
std::string best_within(
    const std::vector<Setting>& settings, double seconds, const std::string& where,
    bool is_partial = false);

}  // namespace abtrain::report
