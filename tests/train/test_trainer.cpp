#include "train/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "error_of.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

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
  EXPECT_LT(largest_difference(*a[0].model, *b[0].model), 2e-4F);
  expect_one_model(a);
}

// A loss that is not finite on one worker ends all of them, with its cause.
class NonFinite : public ::testing::TestWithParam<const char*> {};

TEST_P(NonFinite, EndsAllWorkersWithinAStep) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, 1);
  o.method.name = GetParam();
  std::array<std::int64_t, 4> last{};
  expect_error(
      [&] {
        train_all(o, dataset, [&](int rank, std::int64_t t, nn::Model& model) {
          last[static_cast<std::size_t>(rank)] = t;
          if (rank == 2 && t == 6) {
            const at::NoGradGuard no_grad;
            model.parameters()[0].tensor->fill_(std::numeric_limits<float>::quiet_NaN());
          }
        });
      },
      ErrorKind::Diverged, {"step 7: the loss of worker 2", "'fc1.bias'"});
  if (std::string(GetParam()) == "ddp") {
    for (const std::int64_t t : last) {
      EXPECT_LE(t, 6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, NonFinite, ::testing::Values("ab", "ddp", "local-sgd", "diloco"));

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

// The loss that is checked comes before the update: the last one may break it.
TEST(Trainer, ALastStepThatBreaksTheModelIsDivergence) {
  config::RunOptions o = toy_options(2, 1);
  o.method.name = "ddp";
  o.train.steps = 1;
  o.train.clip_norm = 0;
  o.schedule.name = optim::ScheduleName::Constant;
  o.optimizer.lr = 1e38;
  expect_error([&] { train_all(o, testing::toy_dataset()); }, ErrorKind::Diverged, {"step 1: "});
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
