#include "run/run_length.h"

#include <cmath>

#include "base/error.h"

namespace abtrain::run {

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
  length.steps = options.train.steps > 0
      ? options.train.steps
      : std::llround(
            options.train.epochs *
            static_cast<double>(length.steps_per_epoch));
  ABT_CHECK(
      length.steps > 0,
      Config,
      "train.epochs: ",
      options.train.epochs,
      " epochs of ",
      length.steps_per_epoch,
      " steps make no step");
  return length;
}

nn::InputShape input_shape(const data::Dataset& dataset) {
  return {
      dataset.channels, dataset.height, dataset.width, dataset.classes};
}

}  // namespace abtrain::run
