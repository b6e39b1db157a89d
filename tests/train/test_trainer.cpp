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

using methods::LayerRank;
using testing::expect_same_bits;
using testing::tensors_of;
using testing::toy_options;
using testing::train_all;

struct Case {
  int workers;
  const char* group_size;
  const char* sync;
  int full_rank_steps;
};

class AbRuns : public ::testing::TestWithParam<Case> {};

TEST_P(AbRuns, EndWithOneGoodFactoredModelAndTheSameBitsTwice) {
  const Case c = GetParam();
  config::RunOptions o = toy_options(c.workers, c.group_size);
  o.method.sync = c.sync;
  o.method.full_rank_steps = Duration::steps(c.full_rank_steps);
  const data::Dataset dataset = testing::toy_dataset();
  const auto first = train_all(o, dataset);
  const auto second = train_all(o, dataset);
  for (const TrainResult& r : first) {
    expect_same_bits(*first[0].model, *r.model);
    EXPECT_EQ(r.test.accuracy, first[0].test.accuracy);
  }
  expect_same_bits(*first[0].model, *second[0].model);
  ASSERT_EQ(first[0].layers.size(), 2U);
  for (const LayerRank& l : first[0].layers) {
    EXPECT_EQ(l.rank, 5) << l.name;
  }
  // Factors of fc1 (64x24) and fc2 (24x20), the head 20x4, all biases.
  EXPECT_EQ(
      first[0].model->stored_parameters(),
      5 * (64 + 24) + 5 * (24 + 20) + 20 * 4 + 24 + 20 + 4);
  EXPECT_GT(first[0].test.accuracy, 0.75);  // chance is 0.25
}

INSTANTIATE_TEST_SUITE_P(
    All,
    AbRuns,
    ::testing::Values(
        Case{1, "1", "only-b", 2},
        Case{1, "auto", "only-b", 0},
        Case{2, "1", "only-learned", 2},
        Case{2, "1", "with-stale", 0},
        Case{2, "1", "full", 2},
        Case{2, "2", "only-b", 2},
        Case{4, "1", "only-learned", 0},
        Case{4, "2", "only-learned", 2},
        Case{4, "2", "with-stale", 2},
        Case{4, "1", "full", 0},
        Case{4, "4", "only-b", 2},
        Case{4, "2", "only-b", 0},
        Case{8, "1", "only-learned", 2},
        Case{8, "2", "with-stale", 2},
        Case{8, "4", "full", 2},
        Case{8, "8", "only-b", 0}),
    [](const auto& each) {
      std::string name = std::to_string(each.param.workers) + "x" +
                         each.param.group_size + "_" + each.param.sync + "_D" +
                         std::to_string(each.param.full_rank_steps);
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// Data parallel on P workers is one worker with a batch P times as large.
TEST(Ddp, EqualsOneWorkerWithTheWholeBatch) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions many = toy_options(4, "auto");
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

// While AB-training is in its dense warm-up it is data parallel, to the bit.
TEST(Ab, WarmUpIsDataParallel) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions ab = toy_options(2, "1");
  ab.train.steps = 10;
  ab.method.warmup_steps = Duration::steps(100);
  ab.method.rank.rank = 20;  // no layer is cut: rank >= break-even stays dense
  config::RunOptions ddp = ab;
  ddp.method.name = "ddp";
  expect_same_bits(
      *train_all(ab, dataset)[0].model, *train_all(ddp, dataset)[0].model);
}

TEST(Ab, LocalFullPhaseKeepsReplicasTogetherAfterIt) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, "1");
  o.train.check_replicas = 0;  // replicas differ between averagings
  o.method.warmup_steps = Duration::steps(9);
  o.method.full_phase.sync_every = 4;
  const auto results = train_all(o, dataset);
  for (const TrainResult& r : results) {
    expect_same_bits(*results[0].model, *r.model);
  }
  EXPECT_GT(results[0].test.accuracy, 0.9);
}

TEST(Ab, Bf16OnTheWireStillKeepsReplicasEqual) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, "2");
  o.method.sync_dtype = "bf16";
  o.reducer.dtype = "bf16";
  const auto results = train_all(o, dataset);
  for (const TrainResult& r : results) {
    expect_same_bits(*results[0].model, *r.model);
  }
  EXPECT_GT(results[0].test.accuracy, 0.9);
}

TEST(Ab, EveryRankRuleRuns) {
  const data::Dataset dataset = testing::toy_dataset(256);
  for (const auto rule :
       {linalg::RankRuleName::Sigma,
        linalg::RankRuleName::Energy,
        linalg::RankRuleName::Fraction,
        linalg::RankRuleName::Ratio,
        linalg::RankRuleName::Budget}) {
    config::RunOptions o = toy_options(2, "1");
    o.method.rank.rule = rule;
    o.method.rank.cut = 0.5;
    o.method.rank.keep = 0.6;
    o.method.rank.ratio = 3;
    const auto results = train_all(o, dataset);
    expect_same_bits(*results[0].model, *results[1].model);
    EXPECT_LT(
        results[0].model->stored_parameters(),
        results[0].model->dense_parameters())
        << static_cast<int>(rule);
  }
}

TEST(Ab, ConvolutionsAndRunningStatistics) {
  const data::Dataset dataset = testing::toy_dataset(128, 3, 32);
  config::RunOptions o = toy_options(2, "1");
  o.model.name = "vgg16-small";
  o.model.width = 0.0625;
  o.method.rank.rank = 3;
  o.train.steps = 9;
  o.evaluate.every = Duration::steps(0);
  const auto results = train_all(o, dataset);
  expect_same_bits(*results[0].model, *results[1].model);
  EXPECT_GT(results[0].layers.size(), 10U);
}

// A loss that is not finite on one worker ends all of them, with its cause.
class NonFinite : public ::testing::TestWithParam<const char*> {};

TEST_P(NonFinite, EndsAllWorkersWithinAStep) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, "1");
  o.method.name = GetParam();
  std::array<std::int64_t, 4> last{};
  try {
    train_all(o, dataset, [&](int rank, std::int64_t t, nn::Model& model) {
      last[static_cast<std::size_t>(rank)] = t;
      if (rank == 2 && t == 6) {
        const at::NoGradGuard no_grad;
        model.parameters()[0].tensor->fill_(
            std::numeric_limits<float>::quiet_NaN());
      }
    });
    FAIL() << "the run went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Diverged);
    const std::string message = e.what();
    EXPECT_NE(message.find("step 7: the loss of worker 2"), std::string::npos)
        << message;
    EXPECT_NE(message.find("'fc1.bias'"), std::string::npos) << message;
  }
  if (std::string(GetParam()) == "ddp") {
    for (const std::int64_t t : last) {
      EXPECT_LE(t, 6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods,
    NonFinite,
    ::testing::Values("ab", "ddp", "local-sgd", "diloco"));

TEST(Trainer, TooSmallATrainingSetIsNamed) {
  config::RunOptions o = toy_options(4, "2");
  o.data.batch_size = 200;
  try {
    config::run_length(o, 512);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Config);
    EXPECT_STREQ(
        e.what(),
        "data.batch_size: a step takes 4 workers x 200 images = 800, but the "
        "training set has only 512");
  }
}

TEST(Trainer, TimeAndTrafficAddUp) {
  const data::Dataset dataset = testing::toy_dataset();
  const auto results = train_all(toy_options(4, "2"), dataset);
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
  const config::RunOptions o = toy_options(2, "1");
  TrainInputs inputs{o, dataset, {}, at::kCPU};
  EXPECT_TRUE(train_threads(inputs)[0].step_seconds.empty());
  inputs.time_steps = true;
  for (const TrainResult& r : train_threads(inputs)) {
    EXPECT_EQ(std::ssize(r.step_seconds), o.train.steps);
    EXPECT_GT(std::ranges::min(r.step_seconds), 0);
  }
}

// Layers change between dense and factored from one decomposition to the next:
// whatever was synchronised, all workers end with the same model.
struct Change {
  std::string name;
  std::string sync;
  linalg::RankRuleName rule;
  bool cut_first;
  std::int64_t full_rank_steps;
  std::int64_t steps;
};

class ChangingRanks : public ::testing::TestWithParam<Change> {};

TEST_P(ChangingRanks, LeaveReplicasEqual) {
  const Change& c = GetParam();
  config::RunOptions o = toy_options(4, "1");
  o.method.sync = c.sync;
  o.method.rank.rule = c.rule;
  o.method.rank.keep = 0.97;
  o.method.rank.cut = 0.02;
  o.method.rank.ratio = 1.3;
  o.method.cut_first = c.cut_first;
  o.method.full_rank_steps =
      Duration::steps(static_cast<double>(c.full_rank_steps));
  o.train.steps = c.steps;
  const auto results = train_all(o, testing::toy_dataset());
  for (const TrainResult& r : results) {
    expect_same_bits(*r.model, *results[0].model);
    EXPECT_EQ(r.test.loss, results[0].test.loss);
  }
  EXPECT_GT(results[0].test.accuracy, 0.8);
  // The report tells what the model holds.
  std::size_t next = 0;
  for (const nn::NamedWeight& w :
       nn::factorable_weights(*results[0].model, {"default"})) {
    EXPECT_EQ(results[0].layers[next++].rank, w.weight->rank()) << w.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    ChangingRanks,
    ::testing::Values(
        Change{
            "full_energy",
            "full",
            linalg::RankRuleName::Energy,
            true,
            0,
            60},
        Change{"full_sigma", "full", linalg::RankRuleName::Sigma, true, 0, 58},
        Change{
            "full_budget",
            "full",
            linalg::RankRuleName::Budget,
            true,
            0,
            60},
        Change{
            "full_at_the_end",
            "full",
            linalg::RankRuleName::Energy,
            true,
            2,
            57},
        Change{
            "uncut_energy",
            "only-learned",
            linalg::RankRuleName::Energy,
            false,
            0,
            60},
        Change{
            "uncut_sigma",
            "with-stale",
            linalg::RankRuleName::Sigma,
            false,
            0,
            60},
        Change{
            "dense_again",
            "only-learned",
            linalg::RankRuleName::Sigma,
            true,
            0,
            59}),
    [](const auto& test) { return test.param.name; });

// A layer that the first cut leaves dense is asked again at each next one.
TEST(Ab, ALayerLeftDenseIsReconsidered) {
  config::RunOptions o = toy_options(2, "1");
  o.method.rank.rule = linalg::RankRuleName::Sigma;
  o.method.rank.cut = 0.2;
  o.method.warmup_steps = Duration::steps(0);
  o.method.full_rank_steps = Duration::steps(0);
  o.optimizer.weight_decay = 5;  // decays what is not learned
  o.train.steps = 200;
  bool dense_at_first = false;
  const auto results = train_all(
      o,
      testing::toy_dataset(),
      [&](int rank, std::int64_t step, nn::Model& model) {
        if (rank == 0 && step == 0) {
          for (const auto& w : nn::factorable_weights(model, {"default"})) {
            dense_at_first |= !w.weight->is_factored();
          }
        }
      });
  EXPECT_TRUE(dense_at_first);
  for (const LayerRank& layer : results[0].layers) {
    EXPECT_GT(layer.rank, 0) << layer.name;
  }
}

// Local steps: the check looks only where replicas meet, and they meet as fp32.
TEST(Ab, LocalStepsInTheDensePhases) {
  for (const std::string dtype : {"fp32", "fp16", "bf16"}) {
    config::RunOptions o = toy_options(4, "2");
    o.method.full_phase.sync_every = 3;
    o.method.full_rank_steps = Duration::steps(4);
    o.method.warmup_steps = Duration::steps(9);
    o.reducer.dtype = dtype;
    const auto results = train_all(o, testing::toy_dataset());
    for (const TrainResult& r : results) {
      expect_same_bits(*r.model, *results[0].model);
    }
    EXPECT_GT(results[0].test.accuracy, 0.8) << dtype;
  }
}

// The loss that is checked comes before the update: the last one may break it.
TEST(Trainer, ALastStepThatBreaksTheModelIsDivergence) {
  config::RunOptions o = toy_options(2, "1");
  o.method.name = "ddp";
  o.train.steps = 1;
  o.train.clip_norm = 0;
  o.schedule.name = "constant";
  o.optimizer.lr = 1e38;
  try {
    train_all(o, testing::toy_dataset());
    FAIL() << "it ended well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Diverged);
    EXPECT_NE(std::string(error.what()).find("step 1: "), std::string::npos)
        << error.what();
  }
}

// bf16 is for forward passes: what is decomposed, merged and stored stays fp32.
TEST(Precision, Bf16ChangesForwardPassesOnly) {
  const data::Dataset dataset = testing::toy_dataset();
  std::vector<std::vector<at::Tensor>> first(2);
  std::vector<double> losses;
  for (const std::string precision : {"fp32", "bf16"}) {
    config::RunOptions o = toy_options(2, "1");
    o.method.warmup_steps = Duration::steps(0);
    o.train.precision = precision;
    auto& factors = first[precision == "bf16"];
    const auto results = train_all(
        o, dataset, [&](int rank, std::int64_t step, nn::Model& model) {
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
