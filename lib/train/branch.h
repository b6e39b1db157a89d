// A run that branches off another one: it starts from a checkpoint of that run and may change
// settings that affect only the steps to come, such as the learning rate. Keys that the
// checkpoint's state depends on must stay the same.
#pragma once

#include <string>

#include "base/log.h"
#include "config/run_length.h"
#include "config/run_options.h"
#include "run_folder/checkpoint.h"

namespace abtrain::train {

// If the run folder already holds a branch off the same run, sets `branch_from` to the checkpoint
// recorded there, so that RUN and RUN@best mean the same checkpoint at each start. A `branch_from`
// that names another step stays as it is.
void keep_branch_point(config::RunOptions& options, const std::string& run_folder);

// Finds the checkpoint that `branch_from` names, and replaces `branch_from` by the form
// RUN@step-400. Throws Error(Config) if the state would not fit, naming every such key, or if the
// run would branch off itself; MissingInput; DamagedData.
run_folder::Checkpoint find_branch_point(
    config::RunOptions& options, const std::string& run_folder, Log& log);

// Throws Error(Config) if a run of `length` has no step left after the checkpoint, or if its method
// would have acted differently in the steps so far. Logs how the learning rate continues.
void check_branch(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length,
    Log& log);

// Returns the end of an error message: how a new run with these options can branch off the
// checkpoint; "" if it cannot.
std::string way_by_branch(const config::RunOptions& options, const run_folder::Checkpoint& from);

}  // namespace abtrain::train
