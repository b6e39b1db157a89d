#include "config/run_length.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interval.h"
#include "base/scalars.h"

namespace abtrain::config {

RunLength run_length(const RunOptions& options, std::int64_t train_images) {
  const std::int64_t a_step =
      options.data.batch_size * options.workers * options.train.accumulate;
  RunLength length{train_images / a_step, 0};
  ABT_CHECK(
      length.steps_per_epoch > 0,
      Config,
      "data.batch_size: a step takes ",
      options.workers,
      " workers x ",
      options.data.batch_size,
      " images",
      options.train.accumulate > 1
          ? str(" x ", options.train.accumulate, " micro-batches")
          : std::string(),
      " = ",
      a_step,
      ", but the training set has only ",
      train_images);
  const double steps =
      options.train.epochs * static_cast<double>(length.steps_per_epoch);
  if (options.train.steps > 0) {
    length.steps = options.train.steps;
    return length;
  }
  ABT_CHECK(
      std::llround(std::min(steps, 2 * kMostSteps)) > 0 && steps <= kMostSteps,
      Config,
      "train.epochs: ",
      print_number(options.train.epochs),
      " epochs of ",
      length.steps_per_epoch,
      " steps make ",
      steps < 1 ? std::string("no step")
                : str(print_number(steps),
                      " steps, more than the ",
                      with_commas(std::llround(kMostSteps)),
                      " of the longest run"));
  length.steps = std::llround(steps);
  return length;
}

nn::InputShape input_shape(const data::Dataset& dataset) {
  return {dataset.channels, dataset.height, dataset.width, dataset.classes};
}

}  // namespace abtrain::config
