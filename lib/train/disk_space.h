// What a run writes to the disk of its folder, and what becomes of its model if there is no space.
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "weights/model_file.h"

namespace abtrain::train {

// Estimates, from the sizes that are known before the run. A rank that only spectra can tell counts
// as a dense layer.
struct DiskUse {
  double model = 0;              // bytes of model.safetensors
  double checkpoint = 0;         // bytes of a checkpoint
  std::int64_t checkpoints = 0;  // the most that there are at a time, including one being written
};
DiskUse disk_use(
    const config::RunOptions& options, const data::Dataset& dataset, const RunLength& length);

// Warns if the file system of the run folder has less space than the run still needs.
void check_space(const DiskUse& use, const std::string& run_folder, Log& log);

// Writes <run folder>/model.safetensors. If that fails for want of space or another Error(Io), it
// writes the model into a new folder in $TMPDIR (/tmp), and throws an Error(Io) that names the
// place.
void save_model_of_run(
    const std::string& run_folder, const nn::Model& model, const weights::ModelForm& form);

}  // namespace abtrain::train
