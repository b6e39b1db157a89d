// Evaluates a model of a run on the test set, without training.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/log.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "weights/model_file.h"

namespace abtrain::train {

// Scores a model of the run on the test set. Returns accuracy, loss, images, damaged_images,
// compression_ratio, model and what add_class_scores() adds (train/class_scores.h); for a text
// bits_per_byte, perplexity and windows. `options` come from the config.yaml of the folder.
nlohmann::ordered_json evaluate_run(
    const config::RunOptions& options, const weights::RunModel& model, Log& log);

// The data set's damaged files: their number as "count" and their paths as "files".
nlohmann::ordered_json damaged_images(const data::Dataset& dataset);

}  // namespace abtrain::train
