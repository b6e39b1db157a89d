// How long a run is, and the shape of its images.
#pragma once

#include <cstdint>

#include "base/duration.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "nn/model.h"

namespace abtrain::config {

// Steps in an epoch and in the run, for a training set of that many images.
// Throws Error(Config) where there is not one.
RunLength run_length(const RunOptions& options, std::int64_t train_images);

nn::InputShape input_shape(const data::Dataset& dataset);

}  // namespace abtrain::config
