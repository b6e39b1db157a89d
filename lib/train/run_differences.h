// How two configurations of a run differ, for a run that continues.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::train {

// "  a.b: 1 there, 2 now" for each key that matters and differs. `extended`:
// the steps of a run that is made longer, 0 if it is not; then its length does
// not matter, and what was a share of it may be given in steps.
std::vector<std::string> differences(
    const config::RunOptions& before, const config::RunOptions& now, std::int64_t extended = 0);

// The same for a run that branches off one with the options `before`: only the keys that must stay.
std::vector<std::string> branch_differences(
    const config::RunOptions& before, const config::RunOptions& now);

// Gives each key that is auto in `now`, and of which a run records what auto was, the value that
// the run `before` recorded.
void take_recorded(config::RunOptions& now, const config::RunOptions& before);

// "a.b=10 ..." for each length of the method that is a share of the run.
std::string shares_in_steps(const config::RunOptions& options, std::int64_t run_steps);

}  // namespace abtrain::train
