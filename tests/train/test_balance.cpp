// Runs whose workers have unequal batches: what they learn is what one worker with
// all their examples learns, and where the speeds come from.
#include <gtest/gtest.h>

#include <numeric>

#include "config/config.h"
#include "error_of.h"
#include "train/speeds.h"
#include "train/whole_runs.h"
#include "with_variables.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::toy_options;
using testing::train_all;

config::RunOptions sgd_run(const std::string& method, int workers, std::int64_t batch) {
  config::RunOptions o = toy_options(workers, 1);
  o.method.name = method;
  o.data.batch_size = batch;
  o.optimizer.name = "sgd";
  o.optimizer.momentum = 0;
  o.optimizer.lr = 0.05;
  o.train.clip_norm = 0;
  o.train.steps = 20;
  o.schedule.name = optim::ScheduleName::Constant;
  return o;
}

TEST(Batches, AreInProportionWithTheSameSum) {
  using Batches = std::vector<std::int64_t>;
  const auto batches = [](std::int64_t batch, const std::vector<double>& speeds) {
    config::RunOptions o;
    o.workers = std::ssize(speeds);
    o.data.batch_size = batch;
    o.balance.speeds = speeds;
    return config::batches_of(o);
  };
  EXPECT_EQ(batches(32, {3, 1}), (Batches{48, 16}));
  EXPECT_EQ(batches(64, {1, 1, 0.5}), (Batches{77, 77, 38}));
  EXPECT_EQ(batches(64, {0.1, 0.1, 0.1}), (Batches{64, 64, 64}));
  EXPECT_EQ(batches(10, {42, 85, 65, 8}), (Batches{8, 17, 13, 2}));
  EXPECT_EQ(batches(2, {1e6, 1e-6, 1e-6}), (Batches{4, 1, 1}));
  EXPECT_EQ(batches(1, {5, 1, 5, 1}), (Batches{1, 1, 1, 1}));
  // What a checkpoint records of them gives the same.
  EXPECT_EQ(batches(64, {77, 77, 38}), (Batches{77, 77, 38}));
}

// A step takes the same examples, whatever the shares are; without momentum,
// averaging parameters after each step is averaging gradients.
TEST(Balance, WeighsByExamples) {
  const data::Dataset dataset = testing::toy_dataset();
  const auto alone = train_all(sgd_run("ddp", 1, 64), dataset);
  for (const std::string method : {"ddp", "local-sgd", "diloco"}) {
    SCOPED_TRACE(method);
    config::RunOptions o = sgd_run(method, 2, 32);
    o.balance.speeds = {3, 1};
    o.method.warmup_steps = Duration::steps(2);
    o.method.sync_every = Duration::steps(1);
    o.method.outer.lr = 1;
    o.method.outer.momentum = 0;
    const auto shared = train_all(o, dataset);
    EXPECT_LT(largest_difference(*shared[0].model, *alone[0].model), 2e-6);
    expect_same_bits(*shared[0].model, *shared[1].model);
  }
}

TEST(Balance, MicroBatchesHaveTheSameProportion) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = sgd_run("ddp", 4, 8);
  o.balance.speeds = {1, 2, 0.1, 4};
  o.train.accumulate = 2;
  const auto alone = train_all(sgd_run("ddp", 1, 64), dataset);
  EXPECT_LT(largest_difference(*train_all(o, dataset)[0].model, *alone[0].model), 2e-6);
}

// Each group trains both factors and averages them after each step.
TEST(Balance, WeighsTheFactorsOfGroups) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = sgd_run("ab", 1, 64);
  o.method.trains = methods::Trains::Both;
  o.method.sync_every = Duration::steps(1);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.moments = methods::FactorMoments::Carry;
  const auto alone = train_all(o, dataset);
  config::RunOptions shared = o;
  shared.workers = 4;
  shared.data.batch_size = 16;
  shared.method.group_size = 2;
  shared.balance.speeds = {10, 1, 3, 2};
  EXPECT_LT(largest_difference(*train_all(shared, dataset)[0].model, *alone[0].model), 1e-4);
}

TEST(Balance, EqualSpeedsChangeNoBit) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const std::string method : {"ddp", "ab", "diloco"}) {
    SCOPED_TRACE(method);
    config::RunOptions o = toy_options(2, 1);
    o.method.name = method;
    const auto before = train_all(o, dataset);
    o.balance.speeds = {0.3, 0.3};
    const auto after = train_all(o, dataset);
    expect_same_bits(*before[0].model, *after[0].model);
    EXPECT_EQ(before[0].test.loss, after[0].test.loss);
  }
}

// With shares that change at a resume, each step still takes the same examples.
TEST(Balance, MayChangeAtAResume) {
  config::RunOptions o = sgd_run("ddp", 2, 16);
  o.balance.speeds = {3, 1};
  o.checkpoint.every = Duration::steps(10);
  const SavingRun run(o, testing::toy_dataset(208));
  // In the middle of the second epoch of six steps.
  const auto resumed = run.go_on(10, [](auto& changed) { changed.balance.speeds = {1, 5}; });
  EXPECT_LT(largest_difference(*resumed[0].model, *run.whole()[0].model), 2e-6);
}

// One process of three; the others say what it is told: their variables, their
// hosts, what they measured, as JSON.
class OneOfThree : public WorkerHost {
 public:
  explicit OneOfThree(std::vector<std::vector<std::string>> others)
      : WorkerHost(0, 1, 3), others_(std::move(others)) {}
  std::vector<std::string> gather_text(const std::function<std::string()>& body) override {
    std::vector<std::string> all = {body()};
    if (calls_ < others_.size()) {
      all.insert(all.end(), others_[calls_].begin(), others_[calls_].end());
      ++calls_;
    }
    return all;
  }
  at::Device find_device(device::DeviceChoice, WorkerPlace&) override {
    return at::kCPU;
  }
  void join_folder(const std::string&) override {}
  std::vector<std::string> hosts() const override {
    return {};
  }
  std::string go_on_without_lost(BackEnd) override {
    return "this is a test";
  }
  Loss regroup(const std::exception_ptr& end) override {
    std::rethrow_exception(end);
  }
  void run_workers(const config::RunOptions&, BackEnd, at::Device, const Work&) override {}
  void record(const std::string&, const std::exception_ptr&) override {}

 private:
  std::vector<std::vector<std::string>> others_;
  std::size_t calls_ = 0;
};

const std::vector<std::string> kHosts = {R"("b")", R"("c")"};

class Speeds : public ::testing::Test {
 protected:
  Speeds() {
    options_.workers = 3;
    options_.balance.measures = true;
  }
  std::vector<double> choose(std::vector<std::vector<std::string>> others) {
    OneOfThree host(std::move(others));
    Log log(LogLevel::Quiet);
    choose_speeds(options_, setup_, host, false, log);
    return options_.balance.speeds;
  }
  config::RunOptions options_ = toy_options(3, {});
  train::Setup setup_;
};

TEST_F(Speeds, AreThoseOfTheVariable) {
  const testing::WithVariables variables{{"ABTRAIN_SPEED", "2.5"}};
  EXPECT_EQ(choose({{"1", "1.25"}, kHosts}), (std::vector<double>{2.5, 1, 1.25}));
  EXPECT_EQ(config::batches_of(options_), (std::vector<std::int64_t>{13, 5, 6}));
}

TEST_F(Speeds, NeedTheVariableOfAllOrNone) {
  const testing::WithVariables variables{{"ABTRAIN_SPEED", "2.5"}};
  EXPECT_EQ(
      error_of([&] {
        choose({{"1", "0"}, kHosts});
      }),
      Thrown(
          78,
          "ABTRAIN_SPEED: expected it in the environment of all workers or of none, but worker "
          "2 on c has none"));
}

TEST_F(Speeds, AreAboveZero) {
  for (const char* wrong : {"0", "-1", "fast", "nan", "1e7", "inf"}) {
    const testing::WithVariables variables{{"ABTRAIN_SPEED", wrong}};
    EXPECT_EQ(
        error_of([&] { choose({}); }),
        Thrown(
            78, formatted("ABTRAIN_SPEED: expected a number above 0, up to 1e6, got '{}'", wrong)));
  }
}

// The others take much longer than this machine could.
TEST_F(Speeds, AreMeasuredWithoutTheVariable) {
  const testing::WithVariables none{{"ABTRAIN_SPEED", {}}};
  setup_.dataset = testing::toy_dataset();
  choose(
      {{"0", "0"},
       kHosts,
       {"", ""},
       {R"({"alone":0,"per_example":8})", R"({"alone":4,"per_example":16})"}});
  EXPECT_EQ(config::batches_of(options_), (std::vector<std::int64_t>{22, 1, 1}));
}

TEST(EquallyLongBatches, TakeEquallyLong) {
  // The second worker has half the speed in all that it does.
  const std::vector<StepCost> costs{{10, 0.25}, {20, 0.5}, {10, 0.25}};
  const auto batches = equally_long_batches(costs, 192);
  EXPECT_DOUBLE_EQ(std::accumulate(batches.begin(), batches.end(), 0.0), 192);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    EXPECT_NEAR(costs[i].alone + costs[i].per_example * batches[i], 31.2, 1e-12);  // 312 / 10
  }
  // Without a part of its own, a step's batch is in proportion to the speed.
  EXPECT_EQ(equally_long_batches({{0, 1}, {0, 2}, {0, 4}}, 7), (std::vector<double>{4, 2, 1}));
}

TEST(EquallyLongBatches, HaveAnExampleAtLeast) {
  EXPECT_EQ(equally_long_batches({{0, 1}, {100, 1}, {0, 1}}, 21), (std::vector<double>{10, 1, 10}));
}

TEST_F(Speeds, OfThreadsAreEqual) {
  options_.workers = 1;  // all of the run are in this process
  EXPECT_TRUE(choose({}).empty());
}

}  // namespace
}  // namespace abtrain::train
