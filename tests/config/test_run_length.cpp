// Steps of an epoch and of a run, by hand.
#include "config/run_length.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace abtrain::config {
namespace {

RunOptions options_of(std::int64_t workers, std::int64_t batch_size, double epochs) {
  RunOptions options;
  options.workers = workers;
  options.data.batch_size = batch_size;
  options.train.epochs = epochs;
  return options;
}

void expect_length(
    const RunOptions& options, std::int64_t images, std::int64_t per_epoch, std::int64_t steps) {
  const RunLength length = run_length(options, images);
  EXPECT_EQ(length.steps_per_epoch, per_epoch);
  EXPECT_EQ(length.steps, steps);
}

TEST(RunLength, LeavesOutWhatFillsNoStep) {
  expect_length(options_of(4, 64, 6), 60'000, 234, 1404);  // 60,000 / 256
  expect_length(options_of(4, 64, 6), 256, 1, 6);
  expect_length(options_of(4, 64, 6), 511, 1, 6);
  expect_length(options_of(1, 1, 1), 7, 7, 7);
}

TEST(RunLength, RoundsPartsOfAnEpoch) {
  expect_length(options_of(1, 10, 0.5), 110, 11, 6);
  expect_length(options_of(1, 10, 1.04), 110, 11, 11);
}

TEST(RunLength, CountsMicroBatches) {
  RunOptions options = options_of(2, 5, 3);
  options.train.accumulate = 4;
  expect_length(options, 100, 2, 6);
}

TEST(RunLength, IsThatOfStepsWhereTheyAreSet) {
  RunOptions options = options_of(2, 5, 3);
  options.train.steps = 7;
  expect_length(options, 100, 10, 7);
}

TEST(RunLength, RefusesARunWithoutAStepOrWithoutAnEnd) {
  const auto expect_refused = [](const RunOptions& options, std::int64_t images,
                                 const std::string& key, const std::string& part) {
    const std::string message =
        expect_error([&] { run_length(options, images); }, ErrorKind::Config, {part});
    EXPECT_TRUE(message.starts_with(key)) << message;
  };
  expect_refused(options_of(4, 64, 6), 255, "data.batch_size: ", "= 256");
  expect_refused(options_of(1, 10, 0.04), 110, "train.epochs: ", "no step");
  expect_refused(options_of(1, 1, 1e7 + 1), 10, "train.epochs: ", "");
  expect_length(options_of(1, 1, 1e7), 10, 10, 100'000'000);
}

}  // namespace
}  // namespace abtrain::config
