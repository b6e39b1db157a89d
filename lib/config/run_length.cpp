#include "config/run_length.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/interval.h"
#include "base/scalars.h"

namespace abtrain::config {

RunLength run_length(const RunOptions& options, std::int64_t train_images) {
  const std::int64_t a_step = options.data.batch_size * options.workers * options.train.accumulate;
  RunLength length{train_images / a_step, options.train.steps};
  ABT_CHECK(
      length.steps_per_epoch > 0, Config,
      "data.batch_size: a step takes {} workers x {} {}{} = {}, but the "
      "training set has only {}",
      options.workers, options.data.batch_size, data::examples_of(options.data),
      options.train.accumulate > 1 ? formatted(" x {} micro-batches", options.train.accumulate)
                                   : "",
      a_step, train_images);
  if (options.train.seconds > 0) {
    length.by_clock = true;
    length.steps = static_cast<std::int64_t>(kMaxSteps);
    return length;
  }
  if (options.train.steps > 0) {
    return length;
  }
  const double steps = options.train.epochs * static_cast<double>(length.steps_per_epoch);
  ABT_CHECK(
      std::llround(std::min(steps, 2 * kMaxSteps)) > 0 && steps <= kMaxSteps, Config,
      "train.epochs: {} epochs of {} steps make {}", print_number(options.train.epochs),
      length.steps_per_epoch,
      steps < 1 ? "no step"
                : formatted(
                      "{} steps, more than the {} of the longest run", print_number(steps),
                      with_commas(std::llround(kMaxSteps))));
  length.steps = std::llround(steps);
  return length;
}

data::ExampleShape text_shape(const data::DataOptions& options) {
  return {0, 0, 0, data::vocabulary_of(options), options.context};
}

}  // namespace abtrain::config
