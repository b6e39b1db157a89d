// A run that branches off another one: it starts from a checkpoint of that run with other values of
// what decides how it goes on, such as the learning rate. Keys whose state would not fit stay.
#pragma once

#include <string>

#include "base/log.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "run_folder/checkpoint.h"

namespace abtrain::train {

// Where the run folder already holds a branch off the same run, `branch_from` becomes what that one
// recorded, unless it names a step: RUN and RUN@best mean the same checkpoint at each start.
void keep_branch_point(config::RunOptions& options, const std::string& run_folder);

// The checkpoint that `branch_from` names, which becomes RUN@step-400. Throws Error(Config), naming
// every such key, if its state would not fit, and for a run that would branch off itself;
// MissingInput, DamagedData.
run_folder::Checkpoint find_branch_point(
    config::RunOptions& options, const std::string& run_folder, Log& log);

// Throws Error(Config) if a run of `length` has no step left after the checkpoint, or if its method
// would have acted differently in the steps so far. Says in the log how the learning rate goes on.
void check_branch(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length,
    Log& log);

// How a run with these options can go on from the checkpoint, for a message; "" if it cannot.
std::string way_by_branch(const config::RunOptions& options, const run_folder::Checkpoint& from);

}  // namespace abtrain::train
