// Whole runs in orders that gradients decide on.
#include <gtest/gtest.h>

#include "config/check_run.h"
#include "data/dataset.h"
#include "error_of.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

constexpr auto kMicrobatch = orders::OrderUnit::Microbatch;
constexpr auto kExample = orders::OrderUnit::Example;
constexpr auto kInt8 = orders::OrderWire::Int8;

struct OrderCase {
  const char* name;
  const char* method;
  int workers;
  const char* order;
  orders::OrderUnit unit = kMicrobatch;
  orders::OrderWire wire = orders::OrderWire::Fp32;
  std::int64_t accumulate = 1;
  const char* model = "mlp";
  std::int64_t batch = 8;
};

class OrderRun : public ::testing::TestWithParam<OrderCase> {};

config::RunOptions order_options(const OrderCase& c) {
  config::RunOptions o = testing::toy_options(c.workers, c.workers == 4 ? 2 : 1);
  o.method.name = c.method;
  o.model.name = c.model;
  o.data.batch_size = c.batch;
  o.order.name = c.order;
  o.order.unit = c.unit;
  o.order.wire = c.wire;
  o.train.accumulate = c.accumulate;
  o.train.steps = 57;  // of three workers the last one is a pair's second
  return o;
}

// check_replicas: 1 compares parameters and moments after each step.
TEST_P(OrderRun, LearnsAndSendsWhatThePlanSays) {
  const OrderCase c = GetParam();
  const config::RunOptions o = order_options(c);
  const data::Dataset dataset = testing::toy_dataset(264);
  const auto results = testing::train_all(o, dataset);
  EXPECT_GT(results[0].test.accuracy, 0.9);
  expect_planned_traffic(o, dataset, results[0]);
  for (const WorkerFigures& w : results[0].workers) {
    EXPECT_EQ(w.traffic.orders > 0, std::string(c.order) == "cd-grab");
    EXPECT_EQ(w.traffic.full_phase + w.traffic.ab_phase + w.traffic.switches, w.traffic.total());
  }
  testing::expect_same_bits(*results[0].model, *testing::train_all(o, dataset)[0].model);
}

INSTANTIATE_TEST_SUITE_P(
    All, OrderRun,
    ::testing::Values(
        OrderCase{"grab", "ddp", 3, "grab"}, OrderCase{"id_grab", "ddp", 3, "id-grab"},
        OrderCase{"fp32", "ddp", 3, "cd-grab"},
        OrderCase{"int8", "ddp", 3, "cd-grab", kMicrobatch, kInt8},
        OrderCase{"accumulated", "ddp", 3, "cd-grab", kMicrobatch, kInt8, 2},
        OrderCase{"groups", "ab", 4, "cd-grab", kMicrobatch, kInt8},
        OrderCase{"local", "local-sgd", 3, "cd-grab"},
        OrderCase{"examples", "ddp", 3, "cd-grab", kExample, kInt8, 2},
        OrderCase{"examples_ab", "ab", 4, "cd-grab", kExample},
        OrderCase{"examples_grab", "ddp", 2, "grab", kExample},
        OrderCase{
            "single_images", "ddp", 2, "grab", kExample, orders::OrderWire::Fp32, 4, "mlp", 1}),
    [](const auto& test) { return std::string(test.param.name); });

// The first epoch is that of `shuffle`: until it ends, watching changes nothing
// but roundings.
TEST(OrderRuns, AnExamplesOwnGradientsAddUpToTheBatchs) {
  for (const std::string model : {"mlp", "lenet5", "vit-tiny"}) {
    config::RunOptions o = order_options({"", "ddp", 2, "id-grab", kExample});
    o.model.name = model;
    o.model.patch_size = 8;
    o.train.steps = 3;
    o.evaluate.every = Duration::steps(0);
    const data::Dataset dataset = testing::toy_dataset(64, 1, model == "mlp" ? 8 : 32);
    const auto watched = testing::train_all(o, dataset);
    o.order = {};
    const auto plain = testing::train_all(o, dataset);
    EXPECT_LT(largest_difference(*watched[0].model, *plain[0].model), 2e-3) << model;
  }
}

std::string refusal_of(const config::RunOptions& o) {
  return error_of([&] { config::check_run(o, {1, 28, 28, 10}, 60'000); }).second;
}

TEST(OrderRuns, RefuseExamplesThatBatchNormMixes) {
  config::RunOptions o = order_options({"", "ddp", 2, "cd-grab", kExample});
  o.model.name = "resnet18";
  EXPECT_EQ(
      refusal_of(o),
      "order.unit: example needs the gradient of each example, but resnet18 "
      "has "
      "batch norm, which mixes the examples of a batch; expected microbatch");
  o.order.unit = kMicrobatch;
  EXPECT_EQ(refusal_of(o), "");
  o.model.name = "cnn";
  o.order.unit = kExample;
  EXPECT_EQ(refusal_of(o), "");
}

TEST(OrderRuns, RefuseZerosForHiddenLayers) {
  config::RunOptions o = order_options({"", "ddp", 2, "shuffle"});
  o.model.init = nn::InitName::Zeros;
  EXPECT_EQ(
      refusal_of(o),
      "model.init: mlp has hidden layers, which get no gradient if they start at zero; expected "
      "kaiming or orthogonal, got zeros");
  o.model.name = "softmax";
  EXPECT_EQ(refusal_of(o), "");
  o.model.width = 0.5;
  EXPECT_EQ(
      refusal_of(o),
      "model.width: expected 1, because softmax has no layer to widen; got "
      "0.5");
}

// The specification's gate on the program itself: f - f* of softmax regression
// on 4,096 pooled images of Fashion-MNIST, one image a worker and step.
class ConvexProblem : public ::testing::Test {
 protected:
  static double gap(int workers, double rate, const std::string& order, double epochs = 20) {
    constexpr double kOptimum = 0.7398529;
    config::RunOptions o;
    o.seed = 1;
    o.workers = workers;
    o.data.subset = 4096;
    o.data.pool = 7;
    o.data.standardize = true;
    o.data.batch_size = 1;
    o.model.name = "softmax";
    o.model.init = nn::InitName::Zeros;
    o.method.name = "ddp";
    o.order.name = order;
    o.order.wire = kInt8;
    o.optimizer.name = "sgd";
    o.optimizer.lr = rate;
    o.optimizer.momentum = 0;
    o.optimizer.weight_decay = 0.01;
    o.optimizer.decay_all = true;
    o.schedule.name = optim::ScheduleName::Constant;
    o.schedule.warmup_steps = Duration::steps(0);
    o.train.clip_norm = 0;
    o.train.epochs = epochs;
    o.train.threads = 1;
    o.evaluate.every = Duration::steps(0);
    o.evaluate.train = true;
    static const data::Dataset dataset = data::load_dataset(o.data);
    const auto results = testing::train_all(o, dataset);
    const double found = *results[0].train_loss - kOptimum;
    RecordProperty(formatted("{} of {}", order, workers), formatted("{}", found));
    return found;
  }
};

TEST_F(ConvexProblem, CoordinationBeatsShufflingTenfold) {
  EXPECT_GE(gap(4, 0.02, "shuffle"), 10 * gap(4, 0.02, "cd-grab"));
}

TEST_F(ConvexProblem, CoordinationBeatsWorkersAloneThreefold) {
  EXPECT_GE(gap(16, 0.05, "id-grab"), 3 * gap(16, 0.05, "cd-grab"));
}

}  // namespace
}  // namespace abtrain::train
