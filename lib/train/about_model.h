// What the files of a run's model say about it, in their metadata.
#pragma once

#include "config/run_options.h"
#include "data/dataset.h"
#include "weights/model_file.h"

namespace abtrain::train {

// Model, data set, classes, the shape of an example, and by which mean and
// deviation pixels are normalized; and the version of this program. The names
// and forms are those of docs/weights.md.
// `model_file`: model_file_hash() when the run began.
weights::About about_model(
    const config::RunOptions& options, const data::Dataset& dataset, const std::string& model_file);

}  // namespace abtrain::train
