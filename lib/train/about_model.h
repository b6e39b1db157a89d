// The metadata that a run's model files carry.
#pragma once

#include "config/run_options.h"
#include "data/dataset.h"
#include "weights/model_file.h"

namespace abtrain::train {

// Returns model, data set, classes, example shape, the mean and deviation that normalize pixels,
// and the version of this program, with the keys and formats of docs/weights.md. `model_file`: hash
// of an exported model's file (weights::model_file_hash()) at the start of the run, or "".
weights::About about_model(
    const config::RunOptions& options, const data::Dataset& dataset, const std::string& model_file);

// Throws DamagedData unless the data set has the classes of these names, in this order. Checks
// nothing if either names are unknown. `path`: the model or checkpoint that has learned them.
void check_classes(
    const std::string& path, const std::vector<std::string>& names, const data::Dataset& dataset);

}  // namespace abtrain::train
