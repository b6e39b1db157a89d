// `method.dense_share` in plans: which layers are dense, and what is sent.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

#include "base/text.h"
#include "config/planned_sizes.h"
#include "error_of.h"
#include "plan/plan.h"
#include "plan/traffic_meter.h"
#include "toy_data.h"

namespace abtrain::plan {
namespace {

// Layers of 64 x 24, 24 x 20 and 20 x 18 that may be factored: 1536, 480 and
// 360 of 2376 parameters.
config::RunOptions dense_share_run(double share) {
  config::RunOptions o = testing::metered_run(4);
  testing::set_phases(o, 3, 6, 2);
  o.method.group_size = 2;
  o.method.dense_share = share;
  o.train.steps = 20;
  return o;
}

TEST(DenseShare, PlanEqualsMeter) {
  const data::Dataset dataset = testing::toy_dataset(256);
  struct Expected {
    double share;
    std::size_t factored;
  };
  for (const Expected& e : {Expected{0.15, 3}, Expected{0.16, 2}, Expected{0.36, 1}}) {
    for (const int full_rank : {0, 2}) {
      SCOPED_TRACE(formatted("{} {}", e.share, full_rank));
      config::RunOptions o = dense_share_run(e.share);
      o.method.full_rank_steps = Duration::steps(full_rank);
      const auto planned = config::model_sizes(o, dataset);
      ASSERT_TRUE(planned);
      EXPECT_EQ(planned->sizes.layers.size(), e.factored);
      testing::expect_plan_is_meter(o, dataset);
    }
  }
}

TEST(DenseShare, ABudgetIsMetByTheOtherLayers) {
  const data::Dataset dataset = testing::toy_dataset(256);
  config::RunOptions o = dense_share_run(0.2);
  o.method.rank.rule = linalg::RankRuleName::Budget;
  o.method.rank.ratio = 1.8;
  const auto results = train::train_threads({o, dataset, {}, at::kCPU});
  const nn::Model& model = *results[0].model;
  EXPECT_LE(
      1.8 * static_cast<double>(model.stored_parameters()),
      static_cast<double>(model.dense_parameters()));
  ASSERT_EQ(results[0].layers.size(), 2U);
  EXPECT_EQ(results[0].layers[0].name, "fc1");
  EXPECT_EQ(results[0].layers[1].name, "fc2");
  EXPECT_FALSE(model.weights()[2].weight->is_factored());
}

// Other layers stay factored: their products are decomposed, not formed.
TEST(DenseShare, LayersThatABudgetLeavesDenseAreTheOnlyDenseOnes) {
  const data::Dataset dataset = testing::toy_dataset(256);
  config::RunOptions o = dense_share_run(0);
  o.method.rank.rule = linalg::RankRuleName::Budget;
  o.method.rank.ratio = 2;
  o.method.full_rank_steps = Duration::steps(0);
  std::map<std::string, std::int64_t> ranks;
  const auto results = train::train_threads({o, dataset, {}, at::kCPU});
  for (const methods::LayerRank& layer : results[0].layers) {
    ranks[layer.name] = layer.rank;
  }
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks["fc3"], 0);
  EXPECT_GT(ranks["fc1"], 0);
  testing::expect_plan_is_meter(o, dataset, &ranks);
}

// fc1 has 27.7 % of the parameters of fc1, fc2 and fc3.
TEST(DenseShare, PlanShowsTheLayersAsDense) {
  config::RunOptions o;
  o.workers = 2;
  o.method.warmup_steps = Duration::steps(4);
  o.method.rank.rule = linalg::RankRuleName::Fixed;
  o.method.rank.rank = 32;
  const auto is_shown = [&](const std::string& row) {
    return std::regex_search(plan_text(o), std::regex(row));
  };
  EXPECT_TRUE(is_shown("\n  fc1 +1024 +784 +32 "));
  const auto stored = [&] { return config::model_sizes(o, {1, 28, 28, 10})->stored; };
  const std::int64_t before = stored();
  o.method.dense_share = 0.3;
  EXPECT_TRUE(is_shown("\n  fc1 +1024 +784 +dense +802,816 +802,816\n"));
  EXPECT_TRUE(is_shown("\n  fc2 +1024 +1024 +32 "));
  EXPECT_EQ(stored() - before, 1024 * 784 - 32 * (1024 + 784));
  // Where only the spectra tell the ranks, that layer is dense all the same.
  o.method.rank.rule = linalg::RankRuleName::Energy;
  EXPECT_TRUE(is_shown("\n  fc1 +1024 +784 +dense "));
  EXPECT_TRUE(is_shown("\n  fc2 +1024 +1024 +1-511 "));
  // What stays dense bounds a budget: 2,913,290 / 820,234 = 3.55.
  o.method.rank.rule = linalg::RankRuleName::Budget;
  o.method.rank.ratio = 3;
  EXPECT_TRUE(is_shown("\n  fc1 +1024 +784 +dense "));
  o.method.rank.ratio = 4;
  expect_error([&] { plan_text(o); }, ErrorKind::Config, {"method.rank.ratio: expected at most"});
}

}  // namespace
}  // namespace abtrain::plan
