// Finds how two configurations differ, for a run that resumes from a checkpoint or branches off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/run_options.h"

namespace abtrain::train {

// Returns a line "a.b: 1 there, 2 now" for each key with a difference that a resume does not allow.
// `extended`: the steps of a run that is being extended, else 0. Extending a run may change its
// length, and durations that were a percentage of the run may be given in steps.
std::vector<std::string> differences(
    const config::RunOptions& before, const config::RunOptions& now, std::int64_t extended = 0);

// differences() for a run that branches off a run of `run_steps` steps with the options `before`;
// only keys that a branch must not change. Durations that were a percentage of that run may be
// given in steps.
std::vector<std::string> branch_differences(
    const config::RunOptions& before, const config::RunOptions& now, std::int64_t run_steps);

// For some keys with the value auto, a run records the value that it chose. Sets each such key that
// is auto in `now` to the value that the run `before` recorded.
void take_recorded(config::RunOptions& now, const config::RunOptions& before);

// Returns "a.b=10 ...": the durations of the method that are percentages of the run, in steps.
std::string shares_in_steps(const config::RunOptions& options, std::int64_t run_steps);

}  // namespace abtrain::train
