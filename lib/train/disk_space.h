// The disk space that a run needs in its folder, and another place for its model if the disk is
// full.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "weights/model_file.h"

namespace abtrain::train {

// Estimates from the sizes that are known before the run. Layers count as dense if their ranks will
// be chosen from their singular values.
struct DiskUse {
  double model = 0;              // bytes of model.safetensors
  double checkpoint = 0;         // bytes of a checkpoint
  std::int64_t checkpoints = 0;  // most that exist at a time, including one being written
};
DiskUse disk_use(
    const config::RunOptions& options, const data::Dataset& dataset, const RunLength& length);

// Warns if the file system of the run folder has less space than the run still needs.
void check_space(const DiskUse& use, const std::string& run_folder, Log& log);

// Writes <run folder>/model.safetensors. If that fails for lack of space or with another Error(Io),
// writes the model to a new folder in $TMPDIR (default: /tmp) and throws an Error(Io) that names
// that place.
void save_model_of_run(
    const std::string& run_folder, const nn::Model& model, const weights::ModelForm& form);

}  // namespace abtrain::train
