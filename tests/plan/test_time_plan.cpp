// Closed forms of the alpha-beta model, and that measuring works.
#include "plan/time.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/traffic.h"
#include "plan/plan.h"

namespace abtrain::plan {
namespace {

constexpr double kHeaders = 1 + 66.0 / 1448;
constexpr data::DatasetShape kShape{{1, 8, 8, 4}, 256, 16};
constexpr data::ExampleShape kInput{1, 8, 8, 4};

config::RunOptions options_of(const std::string& method, int workers) {
  config::RunOptions o;
  o.workers = workers;
  o.data.batch_size = 4;
  o.model.hidden = {24, 20, 18};
  o.method.name = method;
  o.method.warmup_steps = Duration::steps(5);
  o.method.sync_every = Duration::steps(20);
  o.method.full_rank_steps = Duration::steps(4);
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 3;
  o.reducer.bucket_mb = 0;
  o.train.steps = 100;
  o.train.threads = 1;
  o.device = device::DeviceChoice::Cpu;
  return o;
}

ComputeTime given(double dense, double ab, double decompose) {
  ComputeTime c;
  c.dense = dense;
  c.ab = ab;
  c.decompose = decompose;
  return c;
}

TimePlan plan_of(const config::RunOptions& o, const Network& network, const ComputeTime& compute) {
  return plan_time(
      o, config::model_sizes(o, kInput)->sizes, config::run_length(o, kShape.train), network,
      compute);
}

double wire_seconds(double bytes, const Network& network) {
  return 8 * bytes * kHeaders / network.rate;
}

TEST(TimePlan, ADataParallelStepIsComputeAndWire) {
  const config::RunOptions o = options_of("ddp", 4);
  const auto parameters = static_cast<double>(config::model_sizes(o, kInput)->sizes.parameters);
  const Network network{4, 1e6, 2e-3, false};
  const TimePlan plan = plan_of(o, network, given(0.5, 0, 0));
  // One bucket leaves when the backward pass has ended, at 90 %.
  const double wire = wire_seconds(2 * 0.75 * parameters * 4, network);
  const double step = 0.5 + wire + 2 * 2e-3;
  EXPECT_NEAR(plan.dense_step, step, 1e-4 * step);
  EXPECT_NEAR(plan.train, 100 * step, 1e-2 * step);
  EXPECT_NEAR(plan.compute, 50, 1e-9);
  EXPECT_NEAR(plan.communication, plan.train - 50, 1e-9);
}

TEST(TimePlan, BucketsHideBehindTheBackwardPass) {
  config::RunOptions o = options_of("ddp", 2);
  o.model.hidden = {1024, 1024, 1024};
  const Network fast{2, 1e12, 0, false};
  o.reducer.bucket_mb = 1;
  const double hidden = plan_of(o, fast, given(1, 0, 0)).dense_step;
  EXPECT_LT(hidden, 1.001);
  EXPECT_GE(hidden, 1);
  // And never all of it: the last bucket leaves at the end.
  const Network slow{2, 1e9, 0, false};
  const double several = plan_of(o, slow, given(1, 0, 0)).dense_step;
  o.reducer.bucket_mb = 0;
  const double one = plan_of(o, slow, given(1, 0, 0)).dense_step;
  EXPECT_LT(several, one);
  EXPECT_GT(several, 1);
}

TEST(TimePlan, WorkersOfOneNodeNeedNoLink) {
  const config::RunOptions o = options_of("ddp", 4);
  const TimePlan plan = plan_of(o, {1, 1e3, 1, false}, given(0.25, 0, 0));
  EXPECT_DOUBLE_EQ(plan.dense_step, 0.25);
  EXPECT_DOUBLE_EQ(plan.train, 25);
  EXPECT_DOUBLE_EQ(plan.communication, 0);
}

TEST(TimePlan, NodesShareTheirLinkAndARingCrossesOnce) {
  const config::RunOptions o = options_of("ddp", 4);
  const auto parameters = static_cast<double>(config::model_sizes(o, kInput)->sizes.parameters);
  const double bytes = 2 * 0.75 * parameters * 4;
  // Two of the three peers of each of two workers are on the other node.
  const double direct = wire_seconds(2 * bytes * 2 / 3, {2, 1e6, 0, false});
  EXPECT_NEAR(plan_of(o, {2, 1e6, 0, false}, given(0, 0, 0)).dense_step, direct, 1e-3 * direct);
  const double ring = wire_seconds(bytes, {2, 1e6, 0, true});
  EXPECT_NEAR(plan_of(o, {2, 1e6, 0, true}, given(0, 0, 0)).dense_step, ring, 1e-3 * ring);
  // Four members pass a message on six times.
  EXPECT_NEAR(plan_of(o, {2, 1e15, 1e-3, true}, given(0, 0, 0)).dense_step, 6e-3, 1e-6);
}

TEST(TimePlan, GroupsInsideNodesPayForSwitchesOnly) {
  const config::RunOptions o = options_of("ab", 4);  // groups of two
  const TimePlan plan = plan_of(o, {2, 1e6, 0, false}, given(0.5, 0.25, 1));
  EXPECT_DOUBLE_EQ(plan.ab_step, 0.25);
  EXPECT_GT(plan.dense_step, 0.5);
  EXPECT_GT(plan.sync, 0);
  EXPECT_GT(plan.decompose, 0);
  // Warm-up 5; AB 5..25, dense 25..29, AB 29..45, ... : decompositions after
  // 5, 29, 49, 69, 89 steps, dense steps 5 + 4 * 4.
  const TimePlan apart = plan_of(o, {4, 1e6, 0, false}, given(0.5, 0.25, 1));
  EXPECT_GT(apart.ab_step, 0.25);
  EXPECT_NEAR(plan.compute, 21 * 0.5 + 79 * 0.25, 1e-9);
}

TEST(TimePlan, DecompositionsAreSharedOut) {
  config::RunOptions o = options_of("ab", 4);
  ComputeTime compute = given(0, 0, 1);
  const auto svd = [&](int measured_by) {
    compute.workers = measured_by;
    const TimePlan plan = plan_of(o, {1, 1e9, 0, false}, compute);
    return plan.train - plan.compute - plan.communication;
  };
  // By four as measured, five times; one alone takes longer than its share.
  EXPECT_NEAR(svd(4), 5, 1e-9);
  EXPECT_LT(svd(1), svd(4));
}

TEST(TimePlan, LocalStepsSendNowAndThen) {
  config::RunOptions o = options_of("local-sgd", 2);
  o.method.warmup_steps = Duration::steps(0);
  o.method.sync_every = Duration::steps(10);
  const auto parameters = static_cast<double>(config::model_sizes(o, kInput)->sizes.parameters);
  const Network network{2, 1e6, 0, false};
  const TimePlan plan = plan_of(o, network, given(0.5, 0, 0));
  // Nine within the run and one at its end.
  const double average = wire_seconds(parameters * 4, network);
  EXPECT_NEAR(plan.train, 100 * 0.5 + 10 * average, 0.01 * average);
  EXPECT_DOUBLE_EQ(plan.dense_step, 0.5);

  o.method.name = "diloco";
  o.method.delay = 0;
  const double waiting = plan_of(o, network, given(0.5, 0, 0)).train;
  o.method.delay = 2;
  const double hidden = plan_of(o, network, given(0.5, 0, 0)).train;
  EXPECT_LT(hidden, waiting);
  EXPECT_GT(hidden, 50);
}

TEST(TimePlan, SaysWhyTimesAreNotReliable) {
  const config::RunOptions o = options_of("ddp", 4);
  ComputeTime compute = given(0.5, 0, 0);
  for (const char* warning : {"", "workers had a core for 27 % of their compute time"}) {
    compute.warning = warning;
    const std::string text = time_text(
        o, config::run_length(o, kShape.train), {}, {plan_of(o, {4, 1e6, 2e-3, false}, compute)});
    EXPECT_EQ(text.find("not reliable") != std::string::npos, compute.warning != "") << text;
    EXPECT_NE(text.find(compute.warning), std::string::npos) << text;
  }
}

TEST(TimePlan, ANetworkIsReadAndItsNodesDivideTheWorkers) {
  const config::RunOptions o = options_of("ddp", 4);
  EXPECT_THROW(network_of({"1Mbit", "", 3}, o), Error);
  for (const std::int64_t nodes : {std::int64_t{1} << 32, (std::int64_t{1} << 32) + 2}) {
    EXPECT_THROW(network_of({"1Mbit", "", nodes}, o), Error);
  }
  EXPECT_THROW(network_of({"", "1ms", 2}, o), Error);  // no bandwidth
  const Network network = network_of({"1Mbit", "2ms", 0}, o);
  EXPECT_EQ(network.nodes, 4);
  EXPECT_EQ(network.rate, 1e6);
  EXPECT_EQ(network.latency, 2e-3);
}

TEST(ComputeTime, MeasuresEveryKindOfStep) {
  for (const char* method : {"ab", "ddp", "diloco"}) {
    for (const int workers : {1, 2, 3}) {
      config::RunOptions o = options_of(method, 4);
      const ComputeTime compute =
          measure_compute(o, kShape, config::model_sizes(o, kInput)->sizes, workers);
      EXPECT_GT(compute.dense, 0) << method << workers;
      EXPECT_EQ(compute.ab > 0, o.method.name == "ab") << method << workers;
      EXPECT_EQ(compute.decompose > 0, o.method.name == "ab");
    }
  }
}

TEST(ComputeTime, TakesAnyDataAndOrder) {
  config::RunOptions o = options_of("ab", 2);
  o.model = {};
  o.model.name = "cnn";
  o.model.channels = {4};
  o.model.hidden = {16};
  o.data.augment = data::AugmentName::CropFlip;
  o.data.standardize = true;
  o.data.pool = 8;
  o.data.validation = 100;
  o.order.name = "cd-grab";
  o.method.sync = methods::SyncMode::OnlyB;
  o.train.accumulate = 2;
  const ComputeTime compute = measure_compute(o, kShape, config::model_sizes(o, kInput)->sizes, 2);
  EXPECT_GT(compute.ab, 0);
}

}  // namespace
}  // namespace abtrain::plan
