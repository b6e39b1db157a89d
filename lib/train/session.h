// A whole run: data, workers, run folder, report.
#pragma once

#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "train/processes.h"
#include "train/setup_watch.h"
#include "train/trainer.h"

namespace abtrain::train {

struct SessionResult {
  std::string folder;   // of the run
  std::string table;    // the report, for people
  std::string summary;  // summary.json
};

struct SessionOptions {
  // none | auto | the folder of a run or a checkpoint (train/resume.h).
  std::string resume = "none";
  // A run of this name that would be lost may be: see train/resume.h.
  bool overwrite = false;
  // Until the first step; may be null.
  SetupWatch* watch = nullptr;
  // The other processes of this run, where a launcher started several; all of
  // them call train() then, and only the first has a result.
  Processes* processes = nullptr;
  TrainHooks hooks = {};  // for tests
};

// Trains; writes <output>/<name>/{config.yaml, metrics.jsonl, summary.json,
// model.safetensors, checkpoints/}. Throws Error(Stopped) where a signal
// (base/signals.h) asked for a stop and a checkpoint holds what was done, or
// where another process trains in the folder (run_folder/run_lock.h). What else
// ends a run is in failure.json too.
SessionResult train(
    const config::RunOptions& options,
    const SessionOptions& session,
    Log& log);

// Scores a model of the run (`model`: a file in its folder or a path, "" for
// model.safetensors) on the test set: JSON with accuracy, loss,
// images, compression_ratio. `options` come from the folder's config.yaml.
std::string evaluate_run(
    const config::RunOptions& options,
    const std::string& folder,
    const std::string& model,
    Log& log);

}  // namespace abtrain::train
