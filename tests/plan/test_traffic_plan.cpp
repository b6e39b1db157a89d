// The formulas of docs/methods.md against the meter, to the byte.
#include "methods/method_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "plan/traffic.h"
#include "plan/traffic_meter.h"
#include "reducer_words.h"
#include "toy_data.h"

namespace abtrain::plan {
namespace {

using methods::SyncMode;
using testing::expect_plan_is_meter;

struct Case {
  const char* name;
  int workers;
  std::optional<std::int64_t> group_size;
  SyncMode sync;
  int warmup, interval, full_rank, steps;
  const char* dtype;
  const char* optimizer;
  std::int64_t narrow = 18;  // width of the last layer; 4: it stays dense
  methods::Trains trains = methods::Trains::One;
  std::int64_t blocks = 1;
};

class Traffic : public ::testing::TestWithParam<Case> {};

TEST_P(Traffic, PlanEqualsMeter) {
  const Case c = GetParam();
  config::RunOptions o = testing::metered_run(c.workers);
  testing::set_phases(o, c.warmup, c.interval, c.full_rank);
  o.model.hidden.back() = c.narrow;
  o.method.name = c.name;
  o.method.group_size = c.group_size;
  o.method.sync = c.sync;
  o.method.trains = c.trains;
  o.method.outer.wire.dtype = std::string(c.dtype) == "bf16" ? at::kBFloat16 : at::kFloat;
  o.method.blocks = c.blocks;
  o.optimizer.name = c.optimizer;
  set_option(o.reducer, "dtype", c.dtype);
  o.train.steps = c.steps;
  expect_plan_is_meter(o, testing::toy_dataset(256));
}

INSTANTIATE_TEST_SUITE_P(
    All, Traffic,
    ::testing::Values(
        Case{"ddp", 3, {}, SyncMode::OnlyLearned, 0, 9, 2, 5, "fp32", "adamw"},
        Case{"ddp", 4, {}, SyncMode::OnlyLearned, 0, 9, 2, 5, "bf16", "sgd"},
        Case{"ab", 1, 1, SyncMode::OnlyB, 2, 5, 1, 12, "fp32", "adamw"},
        Case{"ab", 4, 2, SyncMode::OnlyLearned, 3, 6, 2, 20, "fp32", "adamw"},
        Case{"ab", 4, 1, SyncMode::OnlyLearned, 3, 6, 0, 20, "bf16", "adamw"},
        Case{"ab", 4, 1, SyncMode::Full, 2, 5, 0, 14, "fp32", "sgd"},
        Case{"ab", 4, 2, SyncMode::Full, 2, 5, 1, 14, "fp32", "sgd"},
        Case{"ab", 6, 3, SyncMode::WithStale, 0, 4, 1, 9, "fp32", "adamw"},
        Case{"ab", 3, 1, SyncMode::OnlyB, 0, 4, 0, 8, "bf16", "sgd"},
        Case{"ab", 8, 2, SyncMode::OnlyLearned, 4, 7, 3, 25, "fp32", "adamw"},
        Case{"ab", 4, 1, SyncMode::OnlyLearned, 9, 7, 3, 7, "bf16", "adamw"},
        Case{"ab", 4, 2, SyncMode::OnlyLearned, 4, 7, 3, 25, "fp16", "adamw"},
        Case{"ab", 4, 2, SyncMode::WithStale, 3, 6, 2, 20, "fp16", "sgd"},
        Case{"ab", 4, 1, SyncMode::OnlyLearned, 3, 6, 0, 20, "fp32", "adamw", 4},
        Case{"ab", 4, 2, SyncMode::Full, 2, 5, 0, 14, "fp32", "sgd", 4},
        Case{"ab", 2, 1, SyncMode::OnlyLearned, 2, 6, 2, 14, "fp32", "sgd", 4},
        Case{
            "ab", 4, 2, SyncMode::OnlyLearned, 3, 6, 2, 20, "fp32", "adamw", 18,
            methods::Trains::One, 2},
        Case{"ab", 4, 2, SyncMode::Full, 2, 5, 0, 14, "fp32", "sgd", 18, methods::Trains::One, 2},
        Case{
            "ab", 3, 1, SyncMode::OnlyLearned, 3, 6, 0, 20, "bf16", "adamw", 4,
            methods::Trains::Both},
        // Its last step ends in an average.
        Case{
            "ab", 3, 1, SyncMode::OnlyLearned, 3, 6, 0, 21, "fp32", "adamw", 18,
            methods::Trains::Both, 2},
        Case{
            "ab", 4, 2, SyncMode::OnlyLearned, 3, 6, 2, 20, "fp32", "sgd", 18,
            methods::Trains::Both},
        Case{
            "ab", 2, 2, SyncMode::OnlyLearned, 3, 6, 2, 20, "fp32", "adamw", 4,
            methods::Trains::Both}));

// Factors' changes in codes, with an outer step; the last one is sent plainly.
TEST(WireTraffic, PlanEqualsMeter) {
  for (const char* wire : {"int8", "int4", "int2", "sparseloco"}) {
    for (const char* method : {"ab", "diloco", "local-sgd"}) {
      for (const std::int64_t group_size : {1, 2}) {
        for (const std::int64_t steps : {20, 21, 22}) {
          SCOPED_TRACE(formatted("{} {}, groups of {}, {} steps", method, wire, group_size, steps));
          // Also an odd number of groups.
          config::RunOptions o = testing::metered_run(steps == 21 ? 3 * group_size : 4);
          testing::set_phases(o, 4, 4, 0);
          o.method.name = method;
          o.method.group_size = group_size;
          o.method.trains = steps == 22 ? methods::Trains::Both : methods::Trains::One;
          o.method.fragments = 2;
          o.method.outer.name = methods::OuterRule::Nesterov;
          o.method.outer.wire.name = wire;
          o.train.steps = steps;
          expect_plan_is_meter(o, testing::toy_dataset(256));
        }
      }
    }
  }
}

// Adapters: from singular values or zero, with roles that alternate, with frozen parameters.
TEST(AdapterTraffic, PlanEqualsMeter) {
  using methods::AdapterStart;
  using methods::Roles;
  using methods::Trains;
  for (const auto start : {AdapterStart::Svd, AdapterStart::Zero}) {
    for (const auto sync : {SyncMode::OnlyLearned, SyncMode::OnlyB, SyncMode::Full}) {
      for (const char* wire : {"plain", "int2"}) {
        for (const auto roles : {Roles::Fixed, Roles::Alternate}) {
          if (sync == SyncMode::Full && roles == Roles::Alternate) {
            continue;
          }
          for (const std::int64_t group_size : {1, 2}) {
            config::RunOptions o = testing::metered_run(4);
            testing::set_phases(o, 0, 4, 0);
            o.method.remainder = methods::Remainder::Freeze;
            o.method.start = start;
            o.method.sync = sync;
            o.method.roles = roles;
            o.method.group_size = group_size;
            o.method.outer.wire.name = wire;
            o.model.frozen = group_size == 1 ? std::vector<std::string>{"*", "!fc4.bias"}
                                             : std::vector<std::string>();
            o.train.steps = 15;
            SCOPED_TRACE(formatted(
                "{}, {}, wire {}, roles {}, groups of {}",
                start == AdapterStart::Svd ? "svd" : "zero", methods::name_of(sync), wire,
                roles == Roles::Fixed ? "fixed" : "alternate", group_size));
            expect_plan_is_meter(o, testing::toy_dataset(256));
          }
        }
      }
    }
  }
  for (const std::int64_t group_size : {1, 4}) {
    config::RunOptions o = testing::metered_run(4);
    testing::set_phases(o, 0, 4, 0);
    o.method.remainder = methods::Remainder::Freeze;
    o.method.trains = Trains::Both;
    o.method.group_size = group_size;
    o.train.steps = 15;
    expect_plan_is_meter(o, testing::toy_dataset(256));
  }
  // Frozen parameters are sent by no method.
  for (const char* method : {"ddp", "diloco", "local-sgd", "ab"}) {
    SCOPED_TRACE(method);
    config::RunOptions o = testing::metered_run(2);
    testing::set_phases(o, 2, 4, 0);
    o.method.name = method;
    o.method.group_size = 1;
    o.model.frozen = {"fc1", "fc3.bias"};
    o.train.steps = 9;
    expect_plan_is_meter(o, testing::toy_dataset(256));
  }
}

// Running statistics of the final model, recomputed; those of the others are metrics.
TEST(NormTraffic, PlanEqualsMeter) {
  for (const char* method : {"ab", "ddp", "diloco", "local-sgd"}) {
    for (const char* model : {"vgg11-small", "mlp"}) {
      SCOPED_TRACE(formatted("{} {}", method, model));
      config::RunOptions o = testing::metered_run(3);
      testing::set_phases(o, 1, 3, 1);
      o.model.name = model;
      o.model.width = 0.1;
      o.method.name = method;
      o.method.group_size = 1;
      o.method.rank.rank = 2;
      o.train.steps = 6;
      o.evaluate.every = Duration::steps(4);
      o.evaluate.norm_batches = 2;
      expect_plan_is_meter(o, testing::toy_dataset(48, 3, 32));
    }
  }
}

// Where the rule needs no spectra, the ranks of each cut are known beforehand.
TEST(AnnealedTraffic, PlanEqualsMeter) {
  for (const auto trains : {methods::Trains::One, methods::Trains::Both}) {
    for (const std::int64_t full_rank : {0, 2}) {
      for (const std::int64_t warmup : {0, 5}) {
        config::RunOptions o = testing::metered_run(4);
        testing::set_phases(o, warmup, 4, full_rank);
        o.optimizer.name = "muon";  // whose second buffer stays
        if (warmup > 0 && full_rank == 0) {
          o.method.outer.wire.name = "int4";
        }
        o.method.name = "ab";
        o.method.trains = trains;
        o.method.group_size = trains == methods::Trains::Both ? 1 : 2;
        o.method.rank.rule = linalg::RankRuleName::Ratio;
        o.method.rank.ratio = 4;
        o.method.anneal_from = 0.9;  // dense at first
        o.method.anneal_steps = Duration::steps(13);
        for (const std::int64_t steps :
             {std::int64_t{31}, warmup + 13}) {  // the other ends while dense
          o.train.steps = steps;
          expect_plan_is_meter(o, testing::toy_dataset(64));
        }
        const auto total = [&] {
          return planned_bytes(
              o, config::model_sizes(o, testing::toy_dataset(64))->sizes, {8, o.train.steps});
        };
        const double annealed = total();
        o.method.anneal_steps = {};
        EXPECT_GT(annealed, total());
      }
    }
  }
}

// Long runs are planned round by round: the difference of two lengths is that
// of what lies between.
TEST(LongTraffic, LongRunsArePlannedAtOnce) {
  config::RunOptions o = testing::metered_run(4);
  o.method.name = "ab";
  o.reducer.dense_steps = 40;
  const auto sizes = config::model_sizes(o, testing::toy_dataset(64))->sizes;
  for (const std::int64_t full_rank : {0, 3}) {
    testing::set_phases(o, 5, 7, full_rank);
    // Another reducer of dense steps compresses from another step on.
    o.method.full_phase.reducer.name = "topk";
    o.method.full_phase.reducer.dense_steps = 55;
    o.method.full_phase.reducer.min_numel = 1;
    const auto total = [&](std::int64_t steps) {
      return methods::plan_traffic(config::method_setup(o), {8, steps}, sizes, 1).total;
    };
    for (std::int64_t steps = 60; steps < 70; ++steps) {
      const std::int64_t round = total(steps + 7) - total(steps);
      EXPECT_GT(round, 0);
      // Ten million rounds, without taking each.
      EXPECT_EQ(total(steps + 7 * 10'000'000) - total(steps), 10'000'000 * round);
      }
      // A function of the steps is asked for each: no round is skipped then.
      for (std::int64_t steps = 0; steps < 120; ++steps) {
        const auto one_by_one = methods::plan_traffic(
            config::method_setup(o), {8, steps}, sizes, 1,
            [](auto, auto, auto, auto) { return std::int64_t{0}; });
        EXPECT_EQ(total(steps), one_by_one.total) << steps;
      }
  }
}

}  // namespace
}  // namespace abtrain::plan
