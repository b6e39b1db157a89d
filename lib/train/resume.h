// Whether a run starts anew or goes on, and from where.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "run_folder/checkpoint.h"

namespace abtrain::train {

struct ResumeChoice {
  std::optional<run_folder::Checkpoint> from;  // none: start anew
  bool is_own = false;  // of this run folder, not of another run
};

// Whether the run folder holds this very run, finished, and `how` is auto: then
// nothing is to be done but to report it. Only reads. Throws Error(Config)
// where it is a run of other settings, unless `overwrite` says that it may go.
bool has_finished(
    const std::string& how,
    bool overwrite,
    const config::RunOptions& options,
    const std::string& run_folder);

// how: none | auto | the folder of a run or of one checkpoint. auto is the
// newest checkpoint of the run folder that verifies, if any. Throws
// Error(Config) where the configuration differs in what training depends on,
// naming all such keys; MissingInput and DamagedData for a folder that was
// named.
//
// Without `overwrite` also Error(Config) where a run is there that would be
// lost: a finished one, one with checkpoints, or one of other settings. With it
// auto still goes on with a run of the same settings, so that a job which is
// queued again does not undo what it has done.
//
// The run folder is locked (run_lock.h) by then.
ResumeChoice choose_resume(
    const std::string& how,
    bool overwrite,
    const config::RunOptions& options,
    const std::string& run_folder,
    Log& log);

// The usual choice: auto in a Slurm job, which may be requeued; none elsewhere.
std::string default_resume();

// Makes room for the checkpoints of a fresh start: those of an earlier run move
// to checkpoints.previous.
void put_checkpoints_aside(const std::string& run_folder, Log& log);

}  // namespace abtrain::train
