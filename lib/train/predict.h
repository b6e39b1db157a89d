// Predictions of a run's trained model for images or arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/run_options.h"
#include "weights/model_file.h"

namespace abtrain::train {

struct PredictOptions {
  weights::RunModel model;
  std::vector<std::string> files;  // images and folders of images, or arrays
  std::int64_t top = 1;            // number of likeliest classes to return
};

struct Prediction {
  std::string file;                   // its path; for an array with the index: "x.npy[3]"
  std::vector<std::int64_t> classes;  // the likeliest first; for a regression: all targets
  std::vector<double> probabilities;  // for a regression: the predicted values
};

struct Predictions {
  std::vector<std::string> class_names;  // of all classes; empty: not known
  std::vector<Prediction> of_files;      // in the order of the files
  std::int64_t damaged = 0;              // files that were left out
  bool regression = false;
};

// Prepares the images as an evaluation of the run does; if the run's images have one size, images
// of other sizes get Resize and CenterCrop to it. The run's data set need not be present, except
// with data.standardize. A run on arrays takes .npy files, and safetensors files with a tensor x,
// of examples like its own; then its data set must be present. A folder stands for all image files
// in it and its subfolders, sorted. Damaged files are named in the log. Throws Config if the run's
// network takes no such images, MissingInput for a file that is not there or a folder without
// images, and the errors of load_model().
Predictions predict(const config::RunOptions& configured, const PredictOptions& options, Log& log);

}  // namespace abtrain::train
