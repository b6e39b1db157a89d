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
  const auto refusal = [](const RunOptions& options, std::int64_t images) {
    const auto [code, what] = error_of([&] { run_length(options, images); });
    EXPECT_EQ(code, 78);
    return what;
  };
  const std::string batch = refusal(options_of(4, 64, 6), 255);
  EXPECT_TRUE(batch.starts_with("data.batch_size: ")) << batch;
  EXPECT_NE(batch.find("= 256"), std::string::npos) << batch;
  const std::string none = refusal(options_of(1, 10, 0.04), 110);
  EXPECT_TRUE(none.starts_with("train.epochs: ")) << none;
  EXPECT_NE(none.find("no step"), std::string::npos) << none;
  const std::string endless = refusal(options_of(1, 1, 1e7 + 1), 10);
  EXPECT_TRUE(endless.starts_with("train.epochs: ")) << endless;
  expect_length(options_of(1, 1, 1e7), 10, 10, 100'000'000);
}

}  // namespace
}  // namespace abtrain::config
