// The formulas of docs/methods.md against the meter, to the byte.
#include "methods/method_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "plan/plan.h"
#include "reducer_words.h"
#include "toy_data.h"
#include "train/trainer.h"

namespace abtrain::plan {
namespace {

using methods::Averaged;
using methods::SyncMode;

struct Case {
  const char* name;
  int workers;
  std::optional<std::int64_t> group_size;
  SyncMode sync;
  int warmup, interval, full_rank, steps;
  const char* dtype;
  int local_steps;
  const char* optimizer;
  std::int64_t narrow = 18;  // width of the last layer; 4: it stays dense
  linalg::SvdRoute svd = linalg::SvdRoute::Auto;
};

// Trains, and compares what each worker sent with what was planned.
void expect_plan_is_meter(
    const config::RunOptions& o,
    const data::Dataset& dataset) {
  const auto workers = static_cast<int>(o.workers);
  const std::vector<train::WorkerFigures> figures =
      train::train_threads({o, dataset, {}, at::kCPU})[0].workers;

  const RunLength length = config::run_length(o, dataset.train.size());
  const methods::ModelSizes sizes =
      config::model_sizes(o, config::input_shape(dataset))->sizes;
  for (int r = 0; r < workers; ++r) {
    const methods::TrafficPlan plan =
        methods::plan_traffic(config::method_setup(o), length, sizes, r);
    const train::TrafficSplit& seen =
        figures[static_cast<std::size_t>(r)].traffic;
    EXPECT_EQ(static_cast<double>(plan.total), seen.total()) << "worker " << r;
    EXPECT_EQ(seen.full_phase + seen.ab_phase + seen.switches, seen.total());
  }
}

class Traffic : public ::testing::TestWithParam<Case> {};

TEST_P(Traffic, PlanEqualsMeter) {
  const Case c = GetParam();
  config::RunOptions o;
  o.workers = c.workers;
  o.data.batch_size = 4;
  o.model.hidden = {24, 20, c.narrow};
  o.method.name = c.name;
  o.method.group_size = c.group_size;
  o.method.sync = c.sync;
  o.method.outer.wire.dtype =
      std::string(c.dtype) == "bf16" ? at::kBFloat16 : at::kFloat;
  o.method.warmup_steps = Duration::steps(c.warmup);
  o.method.sync_every = Duration::steps(c.interval);
  o.method.full_rank_steps = Duration::steps(c.full_rank);
  o.method.full_phase.sync_every = c.local_steps;
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 5;
  o.method.svd = c.svd;
  o.optimizer.name = c.optimizer;
  o.optimizer.lr = 1e-3;
  set_option(o.reducer, "dtype", c.dtype);
  o.train.steps = c.steps;
  o.train.threads = 1;
  o.evaluate.every = Duration::steps(0);
  expect_plan_is_meter(o, testing::toy_dataset(256));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Traffic,
    ::testing::Values(
        Case{
            "ddp",
            3,
            {},
            SyncMode::OnlyLearned,
            0,
            9,
            2,
            5,
            "fp32",
            1,
            "adamw"},
        Case{"ddp", 4, {}, SyncMode::OnlyLearned, 0, 9, 2, 5, "bf16", 1, "sgd"},
        Case{"ab", 1, 1, SyncMode::OnlyB, 2, 5, 1, 12, "fp32", 1, "adamw"},
        Case{
            "ab",
            4,
            2,
            SyncMode::OnlyLearned,
            3,
            6,
            2,
            20,
            "fp32",
            1,
            "adamw"},
        Case{
            "ab",
            4,
            1,
            SyncMode::OnlyLearned,
            3,
            6,
            0,
            20,
            "bf16",
            1,
            "adamw"},
        Case{"ab", 4, 1, SyncMode::Full, 2, 5, 0, 14, "fp32", 1, "sgd"},
        Case{"ab", 4, 2, SyncMode::Full, 2, 5, 1, 14, "fp32", 1, "sgd"},
        Case{"ab", 6, 3, SyncMode::WithStale, 0, 4, 1, 9, "fp32", 1, "adamw"},
        Case{"ab", 3, 1, SyncMode::OnlyB, 0, 4, 0, 8, "bf16", 1, "sgd"},
        Case{
            "ab",
            8,
            2,
            SyncMode::OnlyLearned,
            4,
            7,
            3,
            25,
            "fp32",
            3,
            "adamw"},
        Case{"ab", 4, 1, SyncMode::OnlyLearned, 9, 7, 3, 7, "bf16", 2, "adamw"},
        Case{
            "ab",
            4,
            2,
            SyncMode::OnlyLearned,
            4,
            7,
            3,
            25,
            "fp16",
            3,
            "adamw"},
        Case{"ab", 4, 2, SyncMode::WithStale, 3, 6, 2, 20, "fp16", 1, "sgd"},
        Case{
            "ab",
            4,
            1,
            SyncMode::OnlyLearned,
            3,
            6,
            0,
            20,
            "fp32",
            1,
            "adamw",
            4},
        Case{"ab", 4, 2, SyncMode::Full, 2, 5, 0, 14, "fp32", 1, "sgd", 4},
        Case{
            "ab",
            2,
            1,
            SyncMode::OnlyLearned,
            2,
            6,
            2,
            14,
            "fp32",
            1,
            "sgd",
            4},
        Case{
            "ab",
            4,
            2,
            SyncMode::OnlyLearned,
            3,
            6,
            2,
            20,
            "fp32",
            1,
            "adamw",
            18,
            linalg::SvdRoute::Randomized}));

// Factors' changes in codes, with an outer step; the last one is sent plainly.
TEST(WireTraffic, PlanEqualsMeter) {
  for (const char* wire : {"int8", "int4", "int2", "sparseloco"}) {
    for (const char* method : {"ab", "diloco", "local-sgd"}) {
      for (const std::int64_t group_size : {1, 2}) {
        for (const std::int64_t steps : {20, 21}) {
          SCOPED_TRACE(formatted(
              "{} {}, groups of {}, {} steps",
              method,
              wire,
              group_size,
              steps));
          config::RunOptions o;
          o.workers = 4;
          o.data.batch_size = 4;
          o.model.hidden = {24, 20, 18};
          o.method.name = method;
          o.method.group_size = group_size;
          o.method.warmup_steps = Duration::steps(4);
          o.method.sync_every = Duration::steps(4);
          o.method.full_rank_steps = Duration::steps(0);
          o.method.rank.rule = linalg::RankRuleName::Fixed;
          o.method.rank.rank = 5;
          o.method.fragments = 2;
          o.method.outer.name = methods::OuterRule::Nesterov;
          o.method.outer.wire.name = wire;
          o.optimizer.lr = 1e-3;
          o.train.steps = steps;
          o.train.threads = 1;
          o.evaluate.every = Duration::steps(0);
          expect_plan_is_meter(o, testing::toy_dataset(256));
        }
      }
    }
  }
}

// Long runs are planned round by round: the difference of two lengths is that
// of what lies between.
TEST(LongTraffic, LongRunsArePlannedAtOnce) {
  config::RunOptions o;
  o.workers = 4;
  o.model.hidden = {24, 20, 18};
  o.method.name = "ab";
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 5;
  o.reducer.dense_steps = 40;
  const auto sizes =
      config::model_sizes(o, config::input_shape(testing::toy_dataset(64)))
          ->sizes;
  for (const std::int64_t full_rank : {0, 3}) {
    for (const std::int64_t local : {1, 2}) {
      o.method.warmup_steps = Duration::steps(5);
      o.method.sync_every = Duration::steps(7);
      o.method.full_rank_steps = Duration::steps(full_rank);
      o.method.full_phase.sync_every = local;
      const auto total = [&](std::int64_t steps) {
        return methods::plan_traffic(
                   config::method_setup(o), {8, steps}, sizes, 1)
            .total;
      };
      for (std::int64_t steps = 60; steps < 70; ++steps) {
        const std::int64_t round = total(steps + 7) - total(steps);
        EXPECT_GT(round, 0);
        // Ten million rounds, without taking each.
        EXPECT_EQ(
            total(steps + 7 * 10'000'000) - total(steps), 10'000'000 * round);
      }
      // A function of the steps is asked for each: no round is skipped then.
      for (std::int64_t steps = 0; steps < 120; ++steps) {
        const auto one_by_one = methods::plan_traffic(
            config::method_setup(o),
            {8, steps},
            sizes,
            1,
            [](auto, auto, auto, auto, auto) { return std::int64_t{0}; });
        EXPECT_EQ(total(steps), one_by_one.total) << steps;
      }
    }
  }
}

struct LocalCase {
  const char* name;
  const char* method;
  int workers;
  int warmup, interval, fragments, delay, steps;
  const char* dtype;
  Averaged average = Averaged::Params;
  const char* optimizer = "adamw";
  const char* model = "mlp";
  const char* reducer = "plain";
};

LocalCase with_reducer(const char* reducer, LocalCase c) {
  c.name = c.reducer = reducer;
  return c;
}

class LocalTraffic : public ::testing::TestWithParam<LocalCase> {};

TEST_P(LocalTraffic, PlanEqualsMeter) {
  const LocalCase c = GetParam();
  config::RunOptions o;
  o.workers = c.workers;
  o.data.batch_size = 4;
  o.model.name = c.model;
  o.model.hidden = {24, 20, 18};
  o.model.width = 0.1;
  o.method.name = c.method;
  o.method.warmup_steps = Duration::steps(c.warmup);
  o.method.sync_every = Duration::steps(c.interval);
  o.method.fragments = c.fragments;
  o.method.delay = c.delay;
  o.method.average = c.average;
  o.optimizer.name = c.optimizer;
  o.optimizer.lr = 1e-3;
  o.reducer.name = c.reducer;
  set_option(o.reducer, "dtype", c.dtype);
  o.reducer.bucket_mb = 0.002;
  o.reducer.min_numel = 64;
  o.reducer.block = 64;
  o.reducer.bits = 4;
  o.reducer.dense_steps = 6;
  o.train.steps = c.steps;
  o.train.threads = 1;
  o.evaluate.every = Duration::steps(0);
  const bool image = std::string(c.model) != "mlp";
  expect_plan_is_meter(
      o, image ? testing::toy_dataset(64, 1, 16) : testing::toy_dataset(256));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    LocalTraffic,
    ::testing::Values(
        LocalCase{"average", "local-sgd", 3, 0, 4, 1, 0, 13, "fp32"},
        LocalCase{
            "ends_with_a_meeting",
            "local-sgd",
            4,
            0,
            4,
            1,
            0,
            12,
            "fp32"},
        LocalCase{"warm_up_fp16", "local-sgd", 4, 5, 3, 1, 0, 16, "fp16"},
        LocalCase{"no_meeting", "local-sgd", 2, 3, 50, 1, 0, 9, "bf16"},
        LocalCase{
            "moments",
            "local-sgd",
            4,
            2,
            3,
            1,
            0,
            11,
            "fp32",
            Averaged::ParamsAndMoments},
        LocalCase{
            "moments_fp16",
            "local-sgd",
            3,
            0,
            5,
            7,  // not its key
            0,
            11,
            "fp16",
            Averaged::ParamsAndMoments},
        LocalCase{
            "moment_bf16",
            "local-sgd",
            2,
            0,
            2,
            1,
            0,
            7,
            "bf16",
            Averaged::ParamsAndMoments,
            "sgd"},
        LocalCase{"alone", "diloco", 1, 2, 3, 2, 1, 9, "fp32"},
        LocalCase{"outer", "diloco", 4, 3, 4, 1, 0, 17, "bf16"},
        LocalCase{"delayed", "diloco", 3, 0, 5, 1, 4, 16, "fp32"},
        LocalCase{"fragments", "diloco", 4, 1, 7, 3, 0, 23, "fp32"},
        LocalCase{"streaming", "diloco", 4, 2, 9, 4, 2, 31, "fp16"},
        LocalCase{
            "statistics",
            "diloco",
            2,
            1,
            4,
            2,
            1,
            8,
            "fp32",
            Averaged::Params,
            "sgd",
            "resnet18"},
        with_reducer("topk", {"", "local-sgd", 3, 2, 3, 1, 0, 20, "auto"}),
        with_reducer("topk-chunked", {"", "diloco", 2, 0, 4, 1, 0, 17, "auto"}),
        with_reducer("thc", {"", "diloco", 4, 1, 7, 3, 0, 23, "auto"}),
        with_reducer(
            "thc-saturated",
            {"", "local-sgd", 3, 0, 2, 1, 0, 19, "auto"}),
        with_reducer("powersgd", {"", "diloco", 3, 2, 4, 2, 1, 21, "auto"}),
        with_reducer("onebit", {"", "diloco", 2, 3, 3, 1, 0, 33, "auto"}),
        LocalCase{
            "masks_of_onebit",
            "local-sgd",
            2,
            0,
            8,
            1,
            0,
            200,
            "auto",
            Averaged::Params,
            "adamw",
            "mlp",
            "onebit"},
        LocalCase{
            "masks_of_fragments",
            "diloco",
            2,
            3,
            8,
            2,
            1,
            200,
            "auto",
            Averaged::Params,
            "adamw",
            "mlp",
            "onebit"},
        with_reducer("twobit", {"", "local-sgd", 4, 0, 4, 1, 0, 18, "auto"}),
        with_reducer("hylo", {"", "diloco", 4, 2, 9, 4, 2, 31, "auto"}),
        LocalCase{
            "statistics_moments",
            "local-sgd",
            2,
            1,
            3,
            1,
            0,
            6,
            "bf16",
            Averaged::ParamsAndMoments,
            "sgd",
            "resnet18"}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace abtrain::plan
