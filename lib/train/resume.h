// Decides whether a run starts fresh or resumes, and from where.
#pragma once

#include <optional>
#include <string>

#include "base/duration.h"
#include "base/log.h"
#include "config/run_options.h"
#include "run_folder/checkpoint.h"

namespace abtrain::train {

struct ResumeChoice {
  std::optional<run_folder::Checkpoint> from;  // nullopt: start fresh
  bool is_own = false;                         // `from` is a checkpoint of this run folder
  // The run resumes with another train.steps or train.epochs; see check_longer().
  bool changes_length = false;
  bool branches = false;  // `from` is of another run, which this one branches off (branch.h)
};

// True if `how` is auto and the run folder holds this same run, finished, so that only its report
// is left to do. Changes no files. Throws Error(Config) if the folder holds a run with other
// settings, unless `overwrite` allows replacing it.
bool has_finished(
    const std::string& how, bool overwrite, const config::RunOptions& options,
    const std::string& run_folder);

// how: none | auto | the folder of a run or of one checkpoint. auto means the newest intact
// checkpoint of the run folder, if any. Throws Error(Config), naming every such key, if the
// configuration differs in something that training depends on, including the content of model.file;
// MissingInput and DamagedData for a folder that `how` names. If that folder is the run folder
// itself, finished or not, the length of the run may differ.
//
// Without `overwrite`, also throws Error(Config) if an existing run would be lost: a finished one,
// one with checkpoints, or one with other settings. With `overwrite`, auto still resumes a run with
// the same settings, so that a requeued job does not undo its own work.
//
// The run folder must already be locked (run_lock.h).
ResumeChoice choose_resume(
    const std::string& how, bool overwrite, const config::RunOptions& options,
    const std::string& run_folder, Log& log);

// True if the checkpoint lies in the run folder's own folder of checkpoints.
bool is_own(const std::string& run_folder, const run_folder::Checkpoint& checkpoint);

// The configuration that a checkpoint was saved with.
config::RunOptions configuration_of(const run_folder::Checkpoint& checkpoint);

// The key that gives the length of the run.
const char* length_key(const config::RunOptions& options);

// Throws Error(Config) if, in a run of `length`, the method would have acted differently in the
// steps up to this checkpoint, which is from a run of another length.
void check_same_past(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length);

// Checks that a run of `length` can continue from a checkpoint of a run with the same options.
// Throws Error(Config) if it is shorter than that run, or if the method would have acted
// differently in the steps so far. Logs what the extension means for the learning rate.
void check_longer(
    const config::RunOptions& options, const run_folder::Checkpoint& from, const RunLength& length,
    Log& log);

// The default for `how`: auto in a batch job or step of Slurm, which a requeue or a loop in its
// script may start again; none elsewhere, as in an interactive shell.
std::string default_resume();

// Makes way for the checkpoints of a fresh start by moving those of an earlier run to
// checkpoints.previous.
void put_checkpoints_aside(const std::string& run_folder, Log& log);

}  // namespace abtrain::train
