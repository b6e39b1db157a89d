// A whole run: data, workers, run folder, report.
#pragma once

#include <string>

#include "base/log.h"
#include "run/run_options.h"

namespace abtrain::run {

struct SessionResult {
  std::string folder;   // of the run
  std::string table;    // the report, for people
  std::string summary;  // summary.json
};

// Trains; writes <output>/<name>/{config.yaml, metrics.jsonl, summary.json,
// model.safetensors}.
SessionResult train(const RunOptions& options, Log& log);

// Scores <folder>/model.safetensors on the test set: JSON with accuracy, loss,
// images, compression_ratio. `options` come from the folder's config.yaml.
std::string evaluate_run(
    const RunOptions& options, const std::string& folder, Log& log);

}  // namespace abtrain::run
