// A whole run: data, workers, run folder, report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "train/train_inputs.h"
#include "train/workers/setup_watch.h"
#include "train/workers/worker_host.h"
#include "weights/model_file.h"

namespace abtrain::train {

struct SessionOptions {
  // none | auto | the folder of a run or of a checkpoint (train/resume.h).
  std::string resume = "none";
  // Allows replacing an existing run of this name; see train/resume.h.
  bool overwrite = false;
  // The caller will remove the run folder and `output`, so the report does not name them.
  bool leaves_nothing = false;
  // Shows what is being done before the first step, and handles signals until then; may be null.
  SetupWatch* watch = nullptr;
  // Runs the workers; null: they are threads of this process. With several processes, all call
  // train(), and only the one that writes the run folder gets a report.
  WorkerHost* host = nullptr;
  TrainHooks hooks = {};  // for tests
};

// Trains; writes <output>/<name>/{config.yaml, metrics.jsonl, summary.json, model.safetensors,
// checkpoints/}. Returns the report as a readable table. Throws Error(Stopped) if a signal
// (base/signals.h) asked for a stop and a checkpoint holds the progress, or if another process
// trains in the folder (run_folder/run_lock.h). Any other error that ends a run is recorded in
// failure.json too.
std::string train(const config::RunOptions& options, const SessionOptions& session, Log& log);

}  // namespace abtrain::train
