// Runs by the clock: the steps that worker 0 estimates, and what follows from them. All clocks are
// invented.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "config/config.h"
#include "optim/schedule.h"
#include "train/step_clock.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using Clock = std::function<double(std::int64_t t)>;

// The clock of a machine on which step t (from 1 on) takes seconds_of(t).
Clock clock_of(const std::function<double(std::int64_t t)>& seconds_of) {
  return [=](std::int64_t t) {
    double sum = 0;
    for (std::int64_t i = 1; i <= t; ++i) {
      sum += seconds_of(i);
    }
    return sum;
  };
}

struct Walk {
  std::int64_t steps = 0;
  std::vector<std::int64_t> agreements = {};
  std::vector<double> places = {};  // of each step (RunLength::at())
  RunLength length = {};
};

// A whole run of workers that meet after these steps.
Walk walk(
    double seconds, const Clock& clock,
    const std::function<bool(std::int64_t t)>& meets = [](std::int64_t) { return true; }) {
  StepClock steps(seconds);
  Walk w;
  w.length = {100, static_cast<std::int64_t>(kMaxSteps), true};
  steps.begin(0);
  std::int64_t t = 0;
  while (t < w.length.steps) {
    w.places.push_back(w.length.at(t));
    ++t;
    steps.mark(t, clock(t));
    if (steps.is_due(t, meets(t), w.length)) {
      const StepClock::Estimate estimate = steps.estimate(t, clock(t), {});
      steps.agree(estimate);
      w.length.plan(t, estimate.steps);
      w.agreements.push_back(t);
    }
  }
  w.steps = t;
  return w;
}

TEST(StepClock, HasTheStepsThatFitAtAConstantPace) {
  const Walk w = walk(40, clock_of([](std::int64_t) { return 0.1; }));
  EXPECT_EQ(w.steps, 400);
  EXPECT_LT(w.agreements.size(), 90);
  for (std::size_t t = 0; t < w.places.size(); ++t) {
    EXPECT_NEAR(w.places[t], static_cast<double>(t), 1e-9);
  }
}

TEST(StepClock, EndsInTimeWhereThePaceChanges) {
  struct Case {
    const char* name;
    std::function<double(std::int64_t)> seconds_of;
  };
  const std::vector<Case> cases = {
      {"a slow first step", [](std::int64_t t) { return t == 1 ? 4.0 : 0.1; }},
      {"half as fast from the middle on", [](std::int64_t t) { return t < 200 ? 0.1 : 0.2; }},
      {"twice as fast from the middle on", [](std::int64_t t) { return t < 200 ? 0.1 : 0.05; }},
      {"slow at times", [](std::int64_t t) { return t / 30 % 3 == 1 ? 0.25 : 0.1; }},
      {"slow every tenth step", [](std::int64_t t) { return t % 10 == 0 ? 0.6 : 0.05; }}};
  for (const Case& c : cases) {
    for (const std::int64_t meet_every : {1, 10}) {
      SCOPED_TRACE(formatted("{}, meeting every {} steps", c.name, meet_every));
      const Clock clock = clock_of(c.seconds_of);
      const auto meets = [&](std::int64_t t) { return t % meet_every == 0; };
      EXPECT_NEAR(clock(walk(40, clock, meets).steps), 40, 0.8);
    }
  }
}

TEST(StepClock, LeavesTimeForTheEnd) {
  StepClock steps(40);
  steps.begin(0);
  steps.mark(1, 0.1);
  // 38.8 s are left: 1 s and 3 steps of 0.1 s for the end.
  EXPECT_EQ(steps.estimate(12, 1.2, {1, 3}).steps, 12 + 375);
  EXPECT_EQ(steps.estimate(20, 39.5, {1, 3}).steps, 20);
}

// A slow dense phase in which the workers meet, then fast steps of groups that meet every 110.
TEST(StepClock, FollowsAPhaseInWhichTheWorkersMeetRarely) {
  const Clock clock = clock_of([](std::int64_t t) { return t <= 8 ? 0.085 : 0.006; });
  const auto meets = [](std::int64_t t) { return t <= 8 || t % 110 == 8; };
  EXPECT_NEAR(clock(walk(5, clock, meets).steps), 5, 0.1);
}

TEST(StepClock, WaitsForWorker0WhereNobodyMeetsForLong) {
  const Walk w =
      walk(40, clock_of([](std::int64_t) { return 0.1; }), [](std::int64_t) { return false; });
  EXPECT_EQ(w.steps, 400);
  EXPECT_LT(w.agreements.size(), 40);
}

TEST(StepClock, AScheduleHasNoJumpsAndEndsWithTheRun) {
  // The second half is half as fast, so the estimate falls from 400 to 300 steps.
  StepClock steps(40);
  const Clock clock = clock_of([](std::int64_t t) { return t <= 200 ? 0.1 : 0.2; });
  optim::ScheduleOptions options;
  options.name = optim::ScheduleName::Cosine;
  options.warmup_steps = Duration::percent(10);
  optim::Schedule schedule{options, 1.0, {100, static_cast<std::int64_t>(kMaxSteps), true}};
  steps.begin(0);
  std::vector<double> rates;
  std::int64_t t = 0;
  for (; t < schedule.run.steps; ++t) {
    rates.push_back(schedule.at(t));
    steps.mark(t + 1, clock(t + 1));
    if (steps.is_due(t + 1, true, schedule.run)) {
      const StepClock::Estimate estimate = steps.estimate(t + 1, clock(t + 1), {});
      steps.agree(estimate);
      schedule.run.plan(t + 1, estimate.steps);
    }
  }
  EXPECT_NEAR(static_cast<double>(t), 300, 3);
  EXPECT_LT(rates.back(), 1e-3);
  for (std::size_t i = 8; i < rates.size(); ++i) {
    EXPECT_NEAR(rates[i], rates[i - 1], 0.04) << "step " << i;
  }
  // By half of the time, half of the cosine has gone by.
  const double share = (0.5 - 0.1) / 0.9;
  EXPECT_NEAR(rates[200], 0.5 * (1 + std::cos(std::numbers::pi * share)), 0.02);
}

TEST(Recurring, ComesAtSharesOfARunByTheClock) {
  RunLength length{100, 400, true};
  Recurring quarters(Duration::percent(25), length);
  quarters.begin(0, length);
  std::vector<std::int64_t> at;
  for (std::int64_t t = 1; t <= 300; ++t) {
    if (t == 200) {
      length.plan(t, 300);  // half of the run is done, and 100 steps are left
    }
    if (quarters.is_due(t, length)) {
      at.push_back(t);
    }
  }
  EXPECT_EQ(at, (std::vector<std::int64_t>{100, 200, 250, 300}));
}

struct RunCase {
  const char* name;
  std::vector<std::string> sets;
};

void PrintTo(const RunCase& c, std::ostream* out) {
  *out << c.name;
}

class RunByTheClock : public ::testing::TestWithParam<RunCase> {};

config::RunOptions options_of(const std::vector<std::string>& own) {
  std::vector<std::string> sets = {
      "workers=2",
      "model.hidden=[24,20]",
      "data.batch_size=8",
      "train.steps=100",
      "method.group_size=1",
      "method.warmup_steps=10 %",
      "method.sync_every=9",
      "method.full_rank_steps=0",
      "method.rank={rule: fixed, rank: 5}",
      "optimizer.lr=2e-4",
      "schedule.warmup_steps=10 %",
      "train.threads=1",
      "train.precision=fp32",
      "train.check_replicas=1",
      "train.timeout=60",
      "evaluate.every=25 %",
      "checkpoint.every=10"};
  sets.insert(sets.end(), own.begin(), own.end());
  return config::read_config(ABTRAIN_SOURCE_DIR "/configs/fashion_mnist_mlp.yaml", sets);
}

// At a constant pace, the run has the steps and the loss of one with so many steps; the first two
// steps are made before there is an estimate.
TEST_P(RunByTheClock, IsTheRunOfSoManySteps) {
  const data::Dataset dataset = testing::toy_dataset(208);
  config::RunOptions options = options_of(GetParam().sets);
  const auto by_steps = testing::train_all(options, dataset);
  options.train.steps = 0;
  options.train.seconds = 20;
  TrainHooks hooks;
  hooks.seconds_after = [](std::int64_t t) { return 0.2 * static_cast<double>(t); };
  const auto by_clock = testing::train_with(options, dataset, hooks);
  expect_one_model(by_clock);
  EXPECT_EQ(by_clock[0].steps, 100);
  EXPECT_NEAR(by_clock[0].test.loss, by_steps[0].test.loss, 0.03 * by_steps[0].test.loss);
  ASSERT_EQ(by_clock[0].layers.size(), by_steps[0].layers.size());
  for (std::size_t i = 0; i < by_clock[0].layers.size(); ++i) {
    EXPECT_EQ(by_clock[0].layers[i].rank, by_steps[0].layers[i].rank);
  }
  for (std::size_t r = 0; r < by_clock.size(); ++r) {
    EXPECT_EQ(by_clock[r].workers[r].traffic.total(), by_steps[r].workers[r].traffic.total());
  }
}

// Local methods have no dense phases, although AB-training's key has a default. Their interval must
// hold all fragments and delays.
TEST(RunByTheClockOf, DelayedFragmentsLeavesThemEnoughSteps) {
  config::RunOptions options = options_of(
      {"method.name=diloco", "method.warmup_steps=0", "method.fragments=4", "method.delay=5",
       "method.sync_every=2 %", "train.check_replicas=0", "model.hidden=[24,20,16]"});
  options.method.full_rank_steps = Duration::steps(10);
  options.train.steps = 0;
  options.train.seconds = 40;
  TrainHooks hooks;
  hooks.seconds_after = [](std::int64_t t) { return 0.04 * static_cast<double>(t); };
  const auto results = testing::train_with(options, testing::toy_dataset(208), hooks);
  EXPECT_EQ(results[0].steps, 1000);
}

// Halfway, the machine becomes half as fast.
TEST_P(RunByTheClock, FollowsTheClockWhereThePaceChanges) {
  const data::Dataset dataset = testing::toy_dataset(208);
  config::RunOptions options = options_of(GetParam().sets);
  const auto by_steps = testing::train_all(options, dataset);
  options.train.seconds = 20;
  TrainHooks hooks;
  hooks.seconds_after = clock_of([](std::int64_t t) { return t <= 50 ? 0.2 : 0.4; });
  const auto by_clock = testing::train_with(options, dataset, hooks);
  expect_one_model(by_clock);
  EXPECT_NEAR(static_cast<double>(by_clock[0].steps), 75, 2);
  // Ranks are cut to those that the configuration asks for.
  for (std::size_t i = 0; i < by_clock[0].layers.size(); ++i) {
    EXPECT_EQ(by_clock[0].layers[i].rank, by_steps[0].layers[i].rank);
  }
}

TEST_P(RunByTheClock, GoesOnFromACheckpoint) {
  config::RunOptions options = options_of(GetParam().sets);
  options.train.seconds = 20;
  TrainHooks hooks;
  hooks.seconds_after = [](std::int64_t t) { return 0.2 * static_cast<double>(t); };
  const SavingRun run(options, testing::toy_dataset(208), hooks);
  ASSERT_EQ(run.whole()[0].steps, 100);
  for (const std::int64_t step : {20, 60}) {
    SCOPED_TRACE(step);
    const auto resumed = run.go_on(step);
    EXPECT_EQ(resumed[0].steps, 100);
    expect_one_model(resumed);
    EXPECT_NEAR(resumed[0].test.loss, run.whole()[0].test.loss, 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, RunByTheClock,
    ::testing::Values(
        RunCase{"ddp", {"method.name=ddp"}},
        RunCase{"local_sgd", {"method.name=local-sgd", "method.sync_every=4 %"}},
        RunCase{
            "delayed",
            {"method.name=diloco", "method.fragments=2", "method.delay=3", "method.warmup_steps=0",
             "method.sync_every=12"}},
        RunCase{
            "roles",
            {"workers=4", "method.group_size=2", "method.full_rank_steps=2 %",
             "method.sync_every=10 %"}},
        RunCase{
            "both_annealed",
            {"method.trains=both", "method.warmup_steps=0", "method.sync_every=5 %",
             "method.outer.wire.name=int2", "method.rank={rule: budget, ratio: 4}",
             "method.moments=carry", "method.anneal_from=1", "method.anneal_steps=50 %"}}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace abtrain::train
