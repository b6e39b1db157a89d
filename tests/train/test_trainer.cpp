#include "train/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/error.h"
#include "toy_run.h"

namespace abtrain::train {
namespace {

using testing::expect_same_bits;
using testing::tensors_of;
using testing::toy_options;
using testing::train_all;

TEST(Ddp, EqualsOneWorkerWithTheWholeBatch) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions many = toy_options(4, {});
  many.method.name = "ddp";
  many.train.steps = 12;
  config::RunOptions one = many;
  one.workers = 1;
  one.data.batch_size = 32;
  const auto a = train_all(many, dataset);
  const auto b = train_all(one, dataset);
  const auto left = tensors_of(*a[0].model);
  const auto right = tensors_of(*b[0].model);
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_LT((left[i] - right[i]).abs().max().item<float>(), 2e-4F);
  }
  for (const TrainResult& r : a) {
    expect_same_bits(*a[0].model, *r.model);
  }
}

// A loss that is not finite on one worker ends all of them, with its cause.
class NonFinite : public ::testing::TestWithParam<const char*> {};

TEST_P(NonFinite, EndsAllWorkersWithinAStep) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, 1);
  o.method.name = GetParam();
  std::array<std::int64_t, 4> last{};
  try {
    train_all(o, dataset, [&](int rank, std::int64_t t, nn::Model& model) {
      last[static_cast<std::size_t>(rank)] = t;
      if (rank == 2 && t == 6) {
        const at::NoGradGuard no_grad;
        model.parameters()[0].tensor->fill_(std::numeric_limits<float>::quiet_NaN());
      }
    });
    FAIL() << "the run went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Diverged);
    const std::string message = e.what();
    EXPECT_NE(message.find("step 7: the loss of worker 2"), std::string::npos) << message;
    EXPECT_NE(message.find("'fc1.bias'"), std::string::npos) << message;
  }
  if (std::string(GetParam()) == "ddp") {
    for (const std::int64_t t : last) {
      EXPECT_LE(t, 6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, NonFinite, ::testing::Values("ab", "ddp", "local-sgd", "diloco"));

TEST(Trainer, TimeAndTrafficAddUp) {
  const data::Dataset dataset = testing::toy_dataset();
  const auto results = train_all(toy_options(4, 2), dataset);
  ASSERT_EQ(results[0].workers.size(), 4U);
  for (const WorkerFigures& w : results[0].workers) {
    const TimeSplit& s = w.seconds;
    EXPECT_NEAR(s.train, s.compute + s.communication + s.svd + s.data, 1e-9);
    EXPECT_GT(s.compute, 0);
    const TrafficSplit& t = w.traffic;
    EXPECT_EQ(t.total(), t.full_phase + t.ab_phase + t.switches);
    EXPECT_EQ(t.total(), t.inside_groups + t.between_groups);
    EXPECT_GT(t.metrics, 0);
  }
}

TEST(Trainer, TimesItsStepsIfAsked) {
  const data::Dataset dataset = testing::toy_dataset();
  const config::RunOptions o = toy_options(2, 1);
  TrainInputs inputs{o, dataset, {}, at::kCPU};
  EXPECT_TRUE(train_threads(inputs)[0].step_seconds.empty());
  inputs.time_steps = true;
  for (const TrainResult& r : train_threads(inputs)) {
    EXPECT_EQ(std::ssize(r.step_seconds), o.train.steps);
    EXPECT_GT(std::ranges::min(r.step_seconds), 0);
  }
}

// Layers change between dense and factored from one decomposition to the next:
// whatever was synchronized, all workers end with the same model.
// The loss that is checked comes before the update: the last one may break it.
TEST(Trainer, ALastStepThatBreaksTheModelIsDivergence) {
  config::RunOptions o = toy_options(2, 1);
  o.method.name = "ddp";
  o.train.steps = 1;
  o.train.clip_norm = 0;
  o.schedule.name = optim::ScheduleName::Constant;
  o.optimizer.lr = 1e38;
  try {
    train_all(o, testing::toy_dataset());
    FAIL() << "it ended well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Diverged);
    EXPECT_NE(std::string(error.what()).find("step 1: "), std::string::npos) << error.what();
  }
}

// bf16 is for forward passes: what is decomposed, merged and stored stays fp32.
TEST(Precision, Bf16ChangesForwardPassesOnly) {
  const data::Dataset dataset = testing::toy_dataset();
  std::vector<std::vector<at::Tensor>> first(2);
  std::vector<double> losses;
  for (const at::ScalarType precision : {at::kFloat, at::kBFloat16}) {
    config::RunOptions o = toy_options(2, 1);
    o.method.warmup_steps = Duration::steps(0);
    // Products that are large enough, in factors too.
    o.data.batch_size = 64;
    o.model.hidden = {300, 300};
    o.method.rank.rank = 120;
    o.optimizer.lr = 2e-3;
    o.train.steps = 15;
    o.train.precision = precision;
    auto& factors = first[precision == at::kBFloat16];
    const auto results = train_all(o, dataset, [&](int rank, std::int64_t step, nn::Model& model) {
      if (rank == 0 && step == 0) {
        for (const at::Tensor& t : tensors_of(model)) {
          factors.push_back(t.detach().clone());
        }
      }
    });
    for (const at::Tensor& t : tensors_of(*results[0].model)) {
      EXPECT_EQ(t.scalar_type(), at::kFloat);
      // A product that went through bf16 would end in 16 zero bits.
      const at::Tensor cut = t.to(at::kBFloat16).to(at::kFloat);
      EXPECT_FALSE(at::equal(cut, t));
    }
    losses.push_back(results[0].test.loss);
    EXPECT_GT(results[0].test.accuracy, 0.95);
  }
  ASSERT_EQ(first[0].size(), first[1].size());
  for (std::size_t i = 0; i < first[0].size(); ++i) {
    EXPECT_TRUE(at::equal(first[0][i], first[1][i])) << i;
  }
  EXPECT_NE(losses[0], losses[1]);
}

}  // namespace
}  // namespace abtrain::train
