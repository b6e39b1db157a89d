// Whole runs with local steps: beside data parallel ones, and among themselves.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "reducer_words.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::tensors_of;
using testing::toy_options;
using testing::train_all;

config::RunOptions local(int workers, const std::string& method) {
  config::RunOptions o = toy_options(workers, {});
  o.method.name = method;
  return o;
}

// A step of SGD without momentum is linear in the gradient.
TEST(LocalRuns, AveragingEachStepIsDataParallelForPlainSgd) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = local(4, "local-sgd");
  o.method.sync_every = Duration::steps(1);
  o.method.warmup_steps = Duration::steps(3);
  o.optimizer.name = "sgd";
  o.optimizer.momentum = 0;
  o.optimizer.lr = 0.05;
  o.train.clip_norm = 0;
  o.train.steps = 20;
  config::RunOptions ddp = o;
  ddp.method.name = "ddp";
  const auto a = train_all(o, dataset);
  const auto b = train_all(ddp, dataset);
  EXPECT_LT(largest_difference(*a[0].model, *b[0].model), 1e-6F);
  o.method.sync_every = Duration::steps(2);
  const auto c = train_all(o, dataset);
  EXPECT_GT(
      (tensors_of(*c[0].model)[0] - tensors_of(*b[0].model)[0]).abs().max().item<float>(), 1e-5F);
}

TEST(LocalRuns, AnOuterStepOfOneWithoutMomentumIsTheAverage) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = local(3, "diloco");
  o.method.outer.lr = 1;
  o.method.outer.momentum = 0;
  o.train.steps = 30;
  config::RunOptions mean = o;
  mean.method.name = "local-sgd";
  const auto outer = train_all(o, dataset);
  EXPECT_LT(largest_difference(*outer[0].model, *train_all(mean, dataset)[0].model), 1e-6F);
}

struct LocalRunCase {
  const char* name;
  const char* method;
  int workers;
  std::int64_t fragments = 1;
  std::int64_t delay = 0;
  double mixing = 1;
  const char* dtype = "fp32";
  methods::Averaged average = methods::Averaged::Params;
};

class LocalVariants : public ::testing::TestWithParam<LocalRunCase> {};

// Looking at the model on the way changes nothing. The bytes of the warm-up are
// those of a dense phase, all else belongs to the meetings.
TEST_P(LocalVariants, EndWithOneGoodModelAndTheSameBitsTwice) {
  const LocalRunCase& c = GetParam();
  config::RunOptions o = local(c.workers, c.method);
  o.method.fragments = c.fragments;
  o.method.delay = c.delay;
  o.method.mixing = c.mixing;
  o.method.average = c.average;
  set_option(o.reducer, "dtype", c.dtype);
  o.train.steps = 100;
  o.evaluate.every = Duration::steps(3);
  const data::Dataset dataset = testing::toy_dataset();
  const auto first = train_all(o, dataset);
  o.evaluate.every = Duration::steps(0);
  const auto second = train_all(o, dataset);
  expect_one_model(first);
  expect_same_bits(*first[0].model, *second[0].model);
  EXPECT_GT(first[0].test.accuracy, 0.9);  // chance is 0.25
  for (const WorkerFigures& w : first[0].workers) {
    EXPECT_EQ(w.traffic.ab_phase, 0);
    EXPECT_EQ(w.traffic.full_phase, w.traffic.gradient);
    EXPECT_EQ(w.traffic.switches, w.traffic.sync);
    EXPECT_GT(w.traffic.gradient, 0);
    EXPECT_GT(w.traffic.sync, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LocalVariants,
    ::testing::Values(
        LocalRunCase{"local_sgd", "local-sgd", 4},
        LocalRunCase{
            "local_sgd_bf16_moments", "local-sgd", 3, 1, 0, 1, "bf16",
            methods::Averaged::ParamsAndMoments},
        LocalRunCase{"diloco", "diloco", 4},
        LocalRunCase{"diloco_fp16_delayed", "diloco", 2, 1, 5, 1, "fp16"},
        LocalRunCase{"streaming", "diloco", 4, 3, 2, 0.5, "bf16"}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain::train
