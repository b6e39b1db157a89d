// Whether a run starts anew or goes on, and from where.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "run/checkpoint.h"
#include "run/run_options.h"

namespace abtrain::run {

struct ResumeChoice {
  std::optional<Checkpoint> from;  // none: start anew
  bool finished = false;           // all is done: only report
};

// how: none | auto | the folder of a run or of one checkpoint. auto is the newest
// checkpoint of the run folder that verifies, if any. Throws Error(Config) where
// the configuration differs in what training depends on, naming all such keys;
// MissingInput and DamagedData for a folder that was named.
ResumeChoice choose_resume(
    const std::string& how,
    const RunOptions& options,
    const std::string& run_folder,
    Log& log);

// Bytes of the run folder's metrics.jsonl to go on after: none where the checkpoint
// is another run's, whose events stay with it.
std::int64_t kept_metrics(
    const ResumeChoice& resume, const std::string& run_folder);

// The usual choice: auto in a Slurm job, which may be requeued; none elsewhere.
std::string default_resume();

// Makes room for the checkpoints of a fresh start: those of an earlier run move
// to checkpoints.previous, so that a forgotten --resume loses nothing.
void put_checkpoints_aside(const std::string& run_folder, Log& log);

}  // namespace abtrain::run
