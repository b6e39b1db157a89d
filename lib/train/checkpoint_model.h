// Saves the model of a checkpoint as an ordinary model file.
#pragma once

#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "run_folder/checkpoint.h"

namespace abtrain::train {

// Writes the model that an evaluation at the checkpoint would score: workers that trained apart are
// averaged, factors of AB-training synchronized and merged. Recreates all workers as threads on the
// CPU; the data set must be present. `options`: those that the checkpoint was saved with. Throws as
// a resume does.
void save_model_of(
    const run_folder::Checkpoint& checkpoint, const config::RunOptions& options,
    const std::string& path, Log& log);

}  // namespace abtrain::train
