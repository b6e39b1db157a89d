// The length of a run, and the shape of an example of text.
#pragma once

#include <cstdint>

#include "base/duration.h"
#include "config/run_options.h"
#include "data/dataset.h"
#include "nn/model.h"

namespace abtrain::config {

// Steps per epoch and in the whole run, for a training set of `train_images` examples. In a run
// limited by time, the number of steps is kMaxSteps until it is estimated. Throws Error(Config) if
// there is not even one step, or too many.
RunLength run_length(const RunOptions& options, std::int64_t train_images);

// The shape of an example of a text data set; its files need not be present.
data::ExampleShape text_shape(const data::DataOptions& options);

}  // namespace abtrain::config
