// What the trained model of a run says of images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/run_options.h"

namespace abtrain::train {

struct PredictOptions {
  std::string folder;              // of the run
  std::string model;               // a file in it, or a path; "": the run's own model
  std::vector<std::string> files;  // JPEG files, and folders of them
  std::int64_t top = 1;            // how many of the likeliest classes
};

struct Prediction {
  std::string file;
  std::vector<std::int64_t> classes;  // the likeliest first
  std::vector<double> probabilities;
};

struct Predictions {
  std::vector<std::string> class_names;  // of all classes; empty: not known
  std::vector<Prediction> of_files;      // in their order
  std::int64_t damaged = 0;              // files that were left out
};

// Prepares the images as an evaluation of the run does; where its images have
// one size, others get Resize and CenterCrop to it. The run's data set need not
// be present, except with data.standardize. Of a folder, all JPEG files in it
// and below, sorted. Damaged files are named in the log. Throws Config for a run
// whose network takes no such images, MissingInput for a file that is not there
// or a folder without images, and as load_model().
Predictions predict(const config::RunOptions& configured, const PredictOptions& options, Log& log);

}  // namespace abtrain::train
