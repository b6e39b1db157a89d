#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace abtrain::optim {
namespace {

ScheduleOptions options(ScheduleName name, double warmup) {
  ScheduleOptions o;
  o.name = name;
  o.warmup_steps = Duration::steps(warmup);
  return o;
}

TEST(Schedule, WarmUpIsLinear) {
  const Schedule s(options(ScheduleName::Cosine, 10), 1e-2, {10, 100});
  EXPECT_DOUBLE_EQ(s.at(0), 1e-5);
  EXPECT_DOUBLE_EQ(s.at(5), (1e-5 + 1e-2) / 2);
  EXPECT_DOUBLE_EQ(s.at(10), 1e-2);
}

TEST(Schedule, CosineEndsAtTheFinalRate) {
  ScheduleOptions o = options(ScheduleName::Cosine, 20);
  o.final_lr = 1e-4;
  const Schedule s(o, 1e-2, {10, 120});
  EXPECT_NEAR(s.at(70), (1e-2 + 1e-4) / 2, 1e-12);
  EXPECT_NEAR(s.at(120), 1e-4, 1e-12);
  for (int t = 20; t <= 120; ++t) {
    EXPECT_NEAR(
        s.at(t), 1e-4 + (1e-2 - 1e-4) * (1 + std::cos(std::numbers::pi * (t - 20) / 100.0)) / 2,
        1e-12);
  }
}

TEST(Schedule, LinearConstantAndStep) {
  EXPECT_NEAR(Schedule(options(ScheduleName::Linear, 0), 1.0, {10, 100}).at(25), 0.75, 1e-12);
  EXPECT_EQ(Schedule(options(ScheduleName::Constant, 0), 0.3, {10, 100}).at(99), 0.3);
  const Schedule step(options(ScheduleName::Step, 0), 1.0, {10, 100});
  EXPECT_DOUBLE_EQ(step.at(49), 1.0);
  EXPECT_DOUBLE_EQ(step.at(50), 0.1);
  EXPECT_DOUBLE_EQ(step.at(75), 0.1 * 0.1);
}

TEST(Schedule, WarmUpInEpochs) {
  ScheduleOptions o = options(ScheduleName::Constant, 0);
  o.warmup_steps = Duration::epochs(2);
  const Schedule s(o, 1.0, {10, 100});
  EXPECT_LT(s.at(19), 1.0);
  EXPECT_EQ(s.at(20), 1.0);
}

}  // namespace
}  // namespace abtrain::optim
