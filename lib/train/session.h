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
  // Whether an existing run of this name may be lost: see train/resume.h.
  bool overwrite = false;
  // Whether `output` and the run folder will be removed in any case. The report then does not name
  // them.
  bool leaves_nothing = false;
  // Watches until the first step; may be null.
  SetupWatch* watch = nullptr;
  // Where the workers are; null: they are threads of this process. With several processes, all call
  // train(), and only the one that writes gets a report.
  WorkerHost* host = nullptr;
  TrainHooks hooks = {};  // for tests
};

// Trains; writes <output>/<name>/{config.yaml, metrics.jsonl, summary.json, model.safetensors,
// checkpoints/}. Returns the report, for people. Throws Error(Stopped) if a signal (base/signals.h)
// asked for a stop and a checkpoint holds the progress, or if another process trains in the folder
// (run_folder/run_lock.h). Any other error that ends a run is recorded in failure.json too.
std::string train(const config::RunOptions& options, const SessionOptions& session, Log& log);

}  // namespace abtrain::train
