// What a comparison says, in words: which setting wins within each budget of
// bytes and of stored parameters, which settings are dominated, and where
// AB-training stands.
//
// A setting of which a run has diverged competes for nothing; a sentence says so.
//
// Settings are not separated where the seeds do not separate them (budgets.h); what gap could have
// been seen is said (welch.h). Of a setting with fewer than two
// finished runs the mean decides. Runs on different data do not compete.
#pragma once

#include <string>
#include <vector>

#include "report/compare.h"

namespace abtrain::report {

// A setting that takes more than so many times the seconds that were asked for wins nothing.
inline constexpr double kInTime = 1.05;

// One line of whole sentences each; names are safe to show. Data sets with
// fewer than two settings that have finished give none.
// With `seconds`, a setting that took longer (kInTime) competes for nothing.
std::vector<std::string> verdict(const std::vector<Setting>& settings, double seconds = 0);

// Who is best of the settings that trained for no more than so many seconds (by 5 % at most), and
// by how much, in one line; with 0 seconds, of runs that trained equally many steps. `where`: what
// the seconds were measured on; `is_partial`: usual rivals did not run, which the line says. ""
// where runs of several data sets, or of none, have finished, or where the steps that were asked
// for are not those of all.
std::string best_within(
    const std::vector<Setting>& settings, double seconds, const std::string& where,
    bool is_partial = false);

}  // namespace abtrain::report
