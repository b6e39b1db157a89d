// The rank rule `energy` over the cuts of a run: no layer falls below the rank
// of its first cut, nor does a run that goes on from a checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using methods::LayerRank;
using methods::SyncMode;
using testing::toy_dataset;
using testing::toy_options;
using testing::train_all;

// Cuts after 4, 13, 20, ... steps.
config::RunOptions energy_run(int workers) {
  config::RunOptions o = toy_options(workers, 1);
  o.method.rank.rule = linalg::RankRuleName::Energy;
  o.method.rank.keep = 0.6;
  return o;
}

// The ranks of the layers that may be factored, while they are.
struct SeenRanks {
  std::vector<std::int64_t> first;  // 0: not factored so far
  std::vector<std::int64_t> least;
  std::vector<std::int64_t> largest;

  void see(const nn::Model& model) {
    const auto weights = nn::factorable_weights(model, {"default"});
    first.resize(weights.size());
    least.resize(weights.size());
    largest.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t rank = weights[i].weight->rank();
      if (rank > 0) {
        first[i] = first[i] > 0 ? first[i] : rank;
        least[i] = least[i] > 0 ? std::min(least[i], rank) : rank;
        largest[i] = std::max(largest[i], rank);
      }
    }
  }
};

std::vector<TrainResult> watched(const config::RunOptions& o, SeenRanks& seen) {
  return train_all(o, toy_dataset(), [&](int rank, std::int64_t, nn::Model& model) {
    if (rank == 0) {
      seen.see(model);
    }
  });
}

TEST(FirstRanks, NoLaterCutGoesBelowThem) {
  for (const auto sync : {SyncMode::OnlyLearned, SyncMode::Full}) {
    for (const int full_rank : {0, 2}) {
      SCOPED_TRACE(formatted("{}, D {}", methods::name_of(sync), full_rank));
      config::RunOptions o = energy_run(2);
      o.method.sync = sync;
      o.method.full_rank_steps = Duration::steps(full_rank);
      SeenRanks seen;
      const auto results = watched(o, seen);
      ASSERT_EQ(results[0].layers.size(), 2U);
      for (std::size_t i = 0; i < 2; ++i) {
        const LayerRank& layer = results[0].layers[i];
        EXPECT_GT(seen.first[i], 0) << layer.name;
        EXPECT_EQ(seen.least[i], seen.first[i]) << layer.name;
        EXPECT_EQ(layer.first_rank, seen.first[i]) << layer.name;
        EXPECT_GE(layer.rank, layer.first_rank) << layer.name;
        if (full_rank == 0 && sync == SyncMode::OnlyLearned) {
          // A product has nothing beyond its rank.
          EXPECT_EQ(seen.largest[i], seen.first[i]) << layer.name;
        }
      }
      EXPECT_GT(results[0].test.accuracy, 0.5);  // chance is 0.25
    }
  }
}

// An uncut phase is no cut: the first one comes after it.
TEST(FirstRanks, AreThoseOfTheFirstDecompositionThatCuts) {
  config::RunOptions o = energy_run(2);
  o.method.cut_first = false;
  SeenRanks seen;
  const auto results = watched(o, seen);
  const std::vector<std::int64_t> full = {24, 20};
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerRank& layer = results[0].layers[i];
    EXPECT_EQ(seen.first[i], full[i]);
    EXPECT_GT(layer.first_rank, 0) << layer.name;
    EXPECT_LT(layer.first_rank, full[i]) << layer.name;
    EXPECT_EQ(layer.first_rank, seen.least[i]) << layer.name;
  }
}

// Its energy is whole until then, so that is its first cut.
TEST(FirstRanks, OfALayerLeftDenseComeWithALaterCut) {
  config::RunOptions o = energy_run(2);
  o.method.rank.keep = 0.9;
  o.method.warmup_steps = Duration::steps(0);
  o.method.full_rank_steps = Duration::steps(0);
  o.optimizer.weight_decay = 5;  // decays what is not learned
  o.train.steps = 200;
  bool dense_at_first = false;
  SeenRanks seen;
  const auto results =
      train_all(o, toy_dataset(), [&](int rank, std::int64_t step, nn::Model& model) {
        if (rank == 0) {
          seen.see(model);
          dense_at_first |= step == 0 && std::ranges::count(seen.first, 0) > 0;
        }
      });
  EXPECT_TRUE(dense_at_first);
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerRank& layer = results[0].layers[i];
    EXPECT_GT(layer.rank, 0) << layer.name;
    EXPECT_GT(layer.first_rank, 0) << layer.name;
    EXPECT_EQ(layer.first_rank, seen.first[i]) << layer.name;
    EXPECT_EQ(layer.first_rank, seen.least[i]) << layer.name;
  }
}

// Saves after 9, 18, ... steps: in the AB phase, in a dense one, ...
config::RunOptions saving_energy_run() {
  config::RunOptions o = energy_run(2);
  o.train.steps = 40;
  o.checkpoint.every = Duration::steps(9);
  return o;
}

TEST(FirstRanks, AResumedRunHasThemToTheSameBits) {
  const SavingRun run(saving_energy_run(), toy_dataset());
  for (const std::int64_t step : {9, 18, 27, 36}) {
    SCOPED_TRACE(step);
    const auto results = run.go_on(step);
    run.expect_whole(results);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(results[0].layers[i].first_rank, run.whole()[0].layers[i].first_rank) << i;
    }
  }
}

TEST(FirstRanks, OtherNumbersOfWorkersKeepThem) {
  const SavingRun run(saving_energy_run(), toy_dataset());
  for (const std::int64_t step : {9, 18}) {
    const auto results = run.go_on(step, [](auto& changed) { changed.workers = 4; });
    for (std::size_t i = 0; i < 2; ++i) {
      const LayerRank& layer = results[0].layers[i];
      EXPECT_EQ(layer.first_rank, run.whole()[0].layers[i].first_rank) << layer.name;
      EXPECT_GE(layer.rank, layer.first_rank) << layer.name;
    }
  }
}

}  // namespace
}  // namespace abtrain::train
