// Numbers that leave the finite: whatever a run does next, all of its workers
// end with Error(Diverged), and no checkpoint keeps them.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/named.h"
#include "compress/schemes.h"
#include "error_of.h"
#include "run_folder/checkpoint.h"
#include "temp_folder.h"
#include "toy_run.h"

namespace abtrain::train {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

config::RunOptions diverging_options(const std::string& method, const std::string& reducer) {
  config::RunOptions o = testing::toy_options(2, 1);
  o.method.name = method;
  o.method.warmup_steps = Duration::steps(2);
  o.method.sync_every = Duration::steps(4);
  o.method.full_rank_steps = Duration::steps(0);
  o.reducer.name = reducer;
  o.reducer.min_numel = 8;
  o.reducer.bits = 4;
  o.reducer.block = 64;
  o.train.steps = 20;
  o.train.clip_norm = 0;
  o.evaluate.every = Duration::steps(0);
  return o;
}

// The message with which all workers ended.
std::string divergence_of(
    const config::RunOptions& o,
    const std::function<void(int, std::int64_t, nn::Model&)>& before_step = {}) {
  return expect_error(
      [&] { testing::train_all(o, testing::toy_dataset(64), before_step); }, ErrorKind::Diverged);
}

// The loss is that of before the update, so the update that breaks the factors
// is followed by the decomposition of their product at once.
TEST(Divergence, BeforeAProductIsDecomposed) {
  for (const methods::SyncMode sync :
       {methods::SyncMode::OnlyLearned, methods::SyncMode::WithStale, methods::SyncMode::Full}) {
    for (const std::int64_t steps : {20, 6}) {  // 6: that is the last step
      config::RunOptions o = diverging_options("ab", "plain");
      o.method.sync = sync;
      o.method.rank.rule = linalg::RankRuleName::Ratio;
      o.method.rank.ratio = 1;
      o.optimizer.name = "sgd";
      o.optimizer.weight_decay = 0;
      o.schedule.name = optim::ScheduleName::Step;
      o.schedule.step_factor = 1e38;
      const auto share = 1 / static_cast<double>(steps);
      o.schedule.milestones = {4.9 * share, 5 * share};
      o.optimizer.lr = 1e-3;
      o.train.steps = steps;
      const std::string message = divergence_of(o);
      EXPECT_TRUE(
          message.find("layer 'fc") != std::string::npos ||
          message.find("parameter 'fc") != std::string::npos)
          << message;
    }
  }
}

struct DivergenceCase {
  std::string method;
  std::string reducer;
};

class Poisoned : public ::testing::TestWithParam<DivergenceCase> {};

// A gradient that is not finite on one worker, of a loss that is.
TEST_P(Poisoned, EndsAllWorkers) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const config::RunOptions o = diverging_options(GetParam().method, GetParam().reducer);
    divergence_of(o, [&](int rank, std::int64_t t, nn::Model& model) {
      if (rank != 1 || t != 5) {
        return;
      }
      // Adds nothing to the loss, and `bad` to what the optimizer is given.
      for (const nn::NamedWeight& w : model.weights()) {
        for (at::Tensor* tensor : {&w.weight->dense, &w.weight->inner, &w.weight->outer}) {
          if (tensor->defined() && tensor->requires_grad()) {
            tensor->register_hook([bad](const at::Tensor& gradient) {
              at::Tensor broken = gradient.clone();
              broken.view({-1})[1].fill_(bad);
              return broken;
            });
          }
        }
      }
    });
  }
}

std::vector<DivergenceCase> divergence_cases() {
  std::vector<DivergenceCase> cases = {
      {"ab", "plain"},         {"ab", "powersgd"},  {"local-sgd", "plain"}, {"local-sgd", "topk"},
      {"local-sgd", "twobit"}, {"diloco", "plain"}, {"diloco", "thc"},      {"diloco", "powersgd"}};
  for (const std::string& reducer : names_in(compress::schemes())) {
    cases.push_back({"ddp", reducer});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    All, Poisoned, ::testing::ValuesIn(divergence_cases()), [](const auto& test) {
      std::string name = test.param.method + "_" + test.param.reducer;
      std::ranges::replace(name, '-', '_');
      return name;
    });

TEST(Divergence, OrdersByGradientsThatAreNotFinite) {
  for (const orders::OrderWire wire : {orders::OrderWire::Fp32, orders::OrderWire::Int8}) {
    for (const float bad : {kNan, kInfinity}) {
      config::RunOptions o = diverging_options("ddp", "plain");
      o.order.name = "cd-grab";
      o.order.wire = wire;
      divergence_of(o, [&](int rank, std::int64_t t, nn::Model& model) {
        if (rank == 1 && t == 5) {
          model.weights()[0].weight->dense.register_hook(
              [bad](const at::Tensor& gradient) { return gradient.mul(0).add(bad); });
        }
      });
    }
  }
}

// Saved every step: the last checkpoint is one of finite numbers.
TEST(Divergence, KeepsTheCheckpointBefore) {
  const TempFolder folder;
  config::RunOptions o = diverging_options("ddp", "plain");
  o.checkpoint.every = Duration::steps(1);
  o.optimizer.name = "sgd";
  const data::Dataset dataset = testing::toy_dataset(64);
  const run_folder::CheckpointWriter::Options place{folder.path(), "x: 1\n", 2};
  TrainInputs inputs{o, dataset, {}, at::kCPU};
  inputs.checkpoints = &place;
  inputs.hooks.before_step = [](int rank, std::int64_t t, nn::Model& model) {
    if (rank == 1 && t == 5) {
      model.weights()[0].weight->dense.register_hook(
          [](const at::Tensor& gradient) { return gradient.add(kNan); });
    }
  };
  expect_error(
      [&] { train_threads(inputs); }, ErrorKind::Diverged, {"step 6: parameter 'fc1.weight'"});
  EXPECT_TRUE(std::filesystem::exists(folder.file("checkpoints/step-0000000005")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("checkpoints/step-0000000006")));
}

// A running statistic that is not finite harms no loss: norms use those of the batch.
TEST(Divergence, NoCheckpointHoldsABrokenStatistic) {
  for (const std::int64_t every : {1, 0}) {
    const TempFolder folder;
    config::RunOptions o = testing::toy_zoo_options("vgg16-small");
    o.method.name = "ddp";
    o.checkpoint.every = Duration::steps(every);
    const data::Dataset dataset = testing::toy_dataset(64, 3, 32);
    const run_folder::CheckpointWriter::Options place{folder.path(), "x: 1\n", 2};
    TrainInputs inputs{o, dataset, {}, at::kCPU};
    inputs.checkpoints = &place;
    inputs.hooks.before_step = [](int rank, std::int64_t t, nn::Model& model) {
      if (rank == 1 && t == 3) {
        model.buffers()[1].tensor->view({-1})[0].fill_(kNan);
      }
    };
    const std::string message = expect_error(
        [&] { train_threads(inputs); }, ErrorKind::Diverged,
        {every > 0 ? "step 4: " : "step 7: ", "running_var' of worker 1"});
    EXPECT_EQ(message.find("optimizer.lr"), std::string::npos) << message;
    EXPECT_FALSE(std::filesystem::exists(folder.file("checkpoints/step-0000000004")));
  }
}

}  // namespace
}  // namespace abtrain::train
