// Whole runs of AB-training on a small model.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <mutex>

#include "config/check_run.h"
#include "error_of.h"
#include "reducer_words.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using methods::LayerRank;
using methods::SyncMode;
using testing::expect_same_bits;
using testing::toy_options;
using testing::train_all;

struct AbCase {
  int workers;
  std::optional<std::int64_t> group_size;
  SyncMode sync;
  int full_rank_steps;
  methods::Trains trains = methods::Trains::One;
  std::int64_t blocks = 1;
};

class AbRuns : public ::testing::TestWithParam<AbCase> {};

TEST_P(AbRuns, EndWithOneGoodFactoredModelAndTheSameBitsTwice) {
  const AbCase c = GetParam();
  config::RunOptions o = toy_options(c.workers, c.group_size);
  o.method.sync = c.sync;
  o.method.trains = c.trains;
  o.method.blocks = c.blocks;
  o.method.full_rank_steps = Duration::steps(c.full_rank_steps);
  // In a grid, the next multiple of both layers' 4 blocks per side.
  const std::int64_t rank = c.blocks == 1 ? 5 : 8;
  const data::Dataset dataset = testing::toy_dataset();
  const auto first = train_all(o, dataset);
  const auto second = train_all(o, dataset);
  expect_one_model(first);
  expect_same_bits(*first[0].model, *second[0].model);
  ASSERT_EQ(first[0].layers.size(), 2U);
  for (const LayerRank& l : first[0].layers) {
    EXPECT_EQ(l.rank, rank) << l.name;
  }
  // Factors of fc1 (64x24) and fc2 (24x20), the head 20x4, all biases.
  EXPECT_EQ(
      first[0].model->stored_parameters(),
      rank * (64 + 24) + rank * (24 + 20) + 20 * 4 + 24 + 20 + 4);
  for (const nn::NamedWeight& w : first[0].model->weights()) {
    EXPECT_EQ(w.weight->grid(), w.weight->is_factored() ? c.blocks : 1) << w.name;
  }
  EXPECT_GT(first[0].test.accuracy, 0.75);  // chance is 0.25
}

INSTANTIATE_TEST_SUITE_P(
    All, AbRuns,
    ::testing::Values(
        AbCase{1, 1, SyncMode::OnlyB, 2}, AbCase{1, {}, SyncMode::OnlyB, 0},
        AbCase{2, 1, SyncMode::OnlyLearned, 2}, AbCase{2, 1, SyncMode::WithStale, 0},
        AbCase{2, 1, SyncMode::Full, 2}, AbCase{2, 2, SyncMode::OnlyB, 2},
        AbCase{4, 1, SyncMode::OnlyLearned, 0}, AbCase{4, 2, SyncMode::OnlyLearned, 2},
        AbCase{4, 2, SyncMode::WithStale, 2}, AbCase{4, 1, SyncMode::Full, 0},
        AbCase{4, 4, SyncMode::OnlyB, 2}, AbCase{4, 2, SyncMode::OnlyB, 0},
        AbCase{8, 1, SyncMode::OnlyLearned, 2}, AbCase{8, 2, SyncMode::WithStale, 2},
        AbCase{8, 4, SyncMode::Full, 2}, AbCase{8, 8, SyncMode::OnlyB, 0},
        AbCase{1, 1, SyncMode::OnlyLearned, 2, methods::Trains::Both},
        AbCase{3, 1, SyncMode::OnlyLearned, 2, methods::Trains::Both},
        AbCase{4, 2, SyncMode::OnlyLearned, 0, methods::Trains::Both},
        AbCase{4, 4, SyncMode::OnlyLearned, 2, methods::Trains::Both},
        AbCase{2, 1, SyncMode::WithStale, 0, methods::Trains::One, 4},
        AbCase{4, 1, SyncMode::Full, 0, methods::Trains::One, 4},
        AbCase{4, 2, SyncMode::OnlyLearned, 2, methods::Trains::One, 4},
        AbCase{4, 2, SyncMode::OnlyB, 0, methods::Trains::One, 4},
        AbCase{3, 1, SyncMode::OnlyLearned, 0, methods::Trains::Both, 4}),
    [](const auto& each) {
      const auto& size = each.param.group_size;
      std::string name = formatted(
          "{}x{}_{}_D{}", each.param.workers, size ? std::to_string(*size) : "auto",
          methods::name_of(each.param.sync), each.param.full_rank_steps);
      name += each.param.trains == methods::Trains::Both ? "_both" : "";
      name += each.param.blocks > 1 ? "_blocks" : "";
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// After one step of SGD, B is what a group that trains B alone makes of it, and
// workers that average their changes are where those are that average their
// gradients.
TEST(Ab, BothFactorsTakeTheirOwnSteps) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions both = toy_options(1, 1);
  both.method.trains = methods::Trains::Both;
  both.method.warmup_steps = Duration::steps(0);
  both.optimizer = {.name = "sgd", .lr = 0.05, .weight_decay = 0};  // of which each takes half
  both.train.steps = 1;
  config::RunOptions only_b = both;
  only_b.method.trains = methods::Trains::One;
  only_b.method.sync = SyncMode::OnlyB;
  const auto of_both = train_all(both, dataset);
  const auto of_b = train_all(only_b, dataset);
  int factored = 0;
  for (std::size_t i = 0; i < of_b[0].model->weights().size(); ++i) {
    const nn::Weight& got = *of_both[0].model->weights()[i].weight;
    const nn::Weight& wanted = *of_b[0].model->weights()[i].weight;
    if (got.is_factored()) {
      ++factored;
      EXPECT_TRUE(at::equal(got.inner, wanted.inner) != at::equal(got.outer, wanted.outer));
    }
  }
  EXPECT_EQ(factored, 2);
  // With SGD, averages after each of three steps, too.
  both.workers = 2;
  both.train.steps = 3;
  both.method.sync_every = Duration::steps(1);
  both.method.full_rank_steps = Duration::steps(0);
  const auto apart = train_all(both, dataset);
  both.method.group_size = 2;
  both.method.sync_every = Duration::steps(100);
  const auto together = train_all(both, dataset);
  for (std::size_t i = 0; i < apart[0].model->weights().size(); ++i) {
    const at::Tensor a = apart[0].model->weights()[i].weight->merged();
    const at::Tensor b = together[0].model->weights()[i].weight->merged();
    EXPECT_LT((a - b).abs().max().item().toDouble(), 1e-6);
  }
}

// The first cut of untrained weights keeps their direction and, if asked for,
// their sum of squares.
TEST(Ab, FirstFactorsKeepTheVariance) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(1, 1);
  o.method.trains = methods::Trains::Both;
  o.method.warmup_steps = Duration::steps(0);
  o.optimizer = {.name = "sgd", .lr = 1e-12, .weight_decay = 0};
  o.train.steps = 1;
  const auto plain = train_all(o, dataset);
  o.method.keep_variance = true;
  const auto kept = train_all(o, dataset);
  for (std::size_t i = 0; i < plain[0].layers.size(); ++i) {
    const LayerRank& layer = plain[0].layers[i];
    const at::Tensor a = plain[0].model->weights()[i].weight->merged().flatten();
    const at::Tensor b = kept[0].model->weights()[i].weight->merged().flatten();
    const double scale = (a * b).sum().item().toDouble() / (a * a).sum().item().toDouble();
    EXPECT_NEAR(scale * scale * layer.energy, 1, 1e-5) << layer.name;
    EXPECT_LT((b - a * scale).abs().max().item().toDouble(), 1e-6) << layer.name;
  }
}

// Data parallel on P workers is one worker with a batch P times as large.
// While AB-training is in its dense warm-up it is data parallel, to the bit.
TEST(Ab, WarmUpIsDataParallel) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions ab = toy_options(2, 1);
  ab.train.steps = 10;
  ab.method.warmup_steps = Duration::steps(100);
  ab.method.rank.rank = 20;  // no layer is cut: rank >= break-even stays dense
  config::RunOptions ddp = ab;
  ddp.method.name = "ddp";
  expect_same_bits(*train_all(ab, dataset)[0].model, *train_all(ddp, dataset)[0].model);
}

// With dense steps between two AB phases, and without.
TEST(Ab, MomentsAreCarriedThroughDecompositions) {
  const data::Dataset dataset = testing::toy_dataset();
  for (const std::int64_t full_rank_steps : {0, 2}) {
    config::RunOptions zero = toy_options(4, 2);
    zero.method.full_rank_steps = Duration::steps(full_rank_steps);
    config::RunOptions carry = zero;
    carry.method.moments = methods::FactorMoments::Carry;
    const auto results = train_all(carry, dataset);
    expect_one_model(results);
    EXPECT_GT(results[0].test.accuracy, 0.9);
    EXPECT_NE(results[0].test.loss, train_all(zero, dataset)[0].test.loss);
    // Even the first step after the warm-up of four differs.
    zero.train.steps = carry.train.steps = 5;
    EXPECT_NE(train_all(carry, dataset)[0].test.loss, train_all(zero, dataset)[0].test.loss);
  }
}

// The decompositions after 4, 11, 18, ... steps cut to 1.5:1, ... 4:1.
TEST(Ab, AnnealedRanksFallToTheFinalRatio) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, 2);
  o.method.full_rank_steps = Duration::steps(0);
  o.method.rank.rule = linalg::RankRuleName::Ratio;
  o.method.rank.ratio = 4;
  const auto at_once = train_all(o, dataset);
  o.method.anneal_steps = Duration::steps(20);
  o.method.anneal_from = 1.5;
  const auto annealed = train_all(o, dataset);
  ASSERT_EQ(annealed[0].layers.size(), at_once[0].layers.size());
  for (std::size_t i = 0; i < at_once[0].layers.size(); ++i) {
    EXPECT_EQ(annealed[0].layers[i].rank, at_once[0].layers[i].rank);
    // So it lost less at first.
    EXPECT_GT(annealed[0].layers[i].first_energy, at_once[0].layers[i].first_energy);
  }
  expect_one_model(annealed);
  // The last decomposition is 49 steps after the warm-up: the run ends where the next is due.
  config::RunOptions late = o;
  late.method.anneal_steps = Duration::steps(60);
  EXPECT_EQ(
      error_of([&] {
        config::check_run(late, {1, 8, 8, 4}, 512);
      }),
      Thrown(
          78,
          "method.anneal_steps: expected at most 49, so that the last decomposition, after step "
          "53, cuts to method.rank.ratio; got 60"));
}

TEST(Ab, Bf16OnTheWireStillKeepsReplicasEqual) {
  const data::Dataset dataset = testing::toy_dataset();
  config::RunOptions o = toy_options(4, 2);
  o.method.outer.wire.dtype = at::kBFloat16;
  o.reducer.dtype = at::kBFloat16;
  const auto results = train_all(o, dataset);
  expect_one_model(results);
  EXPECT_GT(results[0].test.accuracy, 0.9);
}

TEST(Ab, EveryRankRuleRuns) {
  const data::Dataset dataset = testing::toy_dataset(256);
  for (const linalg::RankRuleKind& kind : linalg::rank_rules()) {
    for (const std::int64_t blocks : {1, 2}) {
      config::RunOptions o = toy_options(2, 1);
      o.method.blocks = blocks;
      o.method.rank.rule = kind.rule;
      o.method.rank.rank = 2;
      o.method.rank.cut = 0.5;
      o.method.rank.keep = 0.6;
      o.method.rank.ratio = 3;
      const auto results = train_all(o, dataset);
      expect_one_model(results);
      EXPECT_LT(results[0].model->stored_parameters(), results[0].model->dense_parameters())
          << kind.name;
      for (const LayerRank& layer : results[0].layers) {
        EXPECT_EQ(layer.rank % blocks, 0) << layer.name;
      }
    }
  }
}

struct Change {
  std::string name;
  SyncMode sync;
  linalg::RankRuleName rule;
  bool cut_first;
  std::int64_t full_rank_steps;
  std::int64_t steps;
  std::int64_t blocks = 1;
};

class ChangingRanks : public ::testing::TestWithParam<Change> {};

TEST_P(ChangingRanks, LeaveReplicasEqual) {
  const Change& c = GetParam();
  config::RunOptions o = toy_options(4, 1);
  o.method.sync = c.sync;
  o.method.rank.rule = c.rule;
  o.method.rank.keep = 0.97;
  o.method.rank.cut = 0.02;
  o.method.rank.ratio = 1.3;
  o.method.cut_first = c.cut_first;
  o.method.blocks = c.blocks;
  o.method.full_rank_steps = Duration::steps(static_cast<double>(c.full_rank_steps));
  o.train.steps = c.steps;
  const auto results = train_all(o, testing::toy_dataset());
  expect_one_model(results);
  EXPECT_GT(results[0].test.accuracy, 0.8);
  // The report tells what the model holds.
  std::size_t next = 0;
  for (const nn::NamedWeight& w : nn::factorable_weights(*results[0].model, {"default"})) {
    EXPECT_EQ(results[0].layers[next++].rank, w.weight->rank()) << w.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ChangingRanks,
    ::testing::Values(
        Change{"full_energy_blocks", SyncMode::Full, linalg::RankRuleName::Energy, true, 0, 60, 4},
        Change{
            "uncut_sigma_blocks", SyncMode::WithStale, linalg::RankRuleName::Sigma, false, 0, 60,
            4},
        Change{"full_energy", SyncMode::Full, linalg::RankRuleName::Energy, true, 0, 60},
        Change{"full_sigma", SyncMode::Full, linalg::RankRuleName::Sigma, true, 0, 58},
        Change{"full_budget", SyncMode::Full, linalg::RankRuleName::Budget, true, 0, 60},
        Change{"full_at_the_end", SyncMode::Full, linalg::RankRuleName::Energy, true, 2, 57},
        Change{"uncut_energy", SyncMode::OnlyLearned, linalg::RankRuleName::Energy, false, 0, 60},
        Change{"uncut_sigma", SyncMode::WithStale, linalg::RankRuleName::Sigma, false, 0, 60},
        Change{"dense_again", SyncMode::OnlyLearned, linalg::RankRuleName::Sigma, true, 0, 59}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace abtrain::train
