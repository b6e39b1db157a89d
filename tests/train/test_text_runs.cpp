// Whole runs of a small language model, with every kind of method, reducer,
// optimizer and order.
#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/arrays/array_set.h"
#include "toy_text.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

struct TextCase {
  const char* name;
  int workers;
  void (*change)(config::RunOptions& o);
};

class TextRun : public ::testing::TestWithParam<TextCase> {};

// check_replicas: 1 compares parameters and moments after each step.
TEST_P(TextRun, LearnsTheSameBitsAndSendsWhatThePlanSays) {
  const TextCase c = GetParam();
  config::RunOptions o = testing::toy_text_options(c.workers, c.workers == 4 ? 2 : 1);
  c.change(o);
  const data::Dataset set = testing::toy_text();
  const auto results = testing::train_all(o, set);
  const Score& test = results[0].test;
  ASSERT_TRUE(test.is_text());
  // Four bits are a token of which nothing is known.
  EXPECT_LT(test.bits_per_byte(), 3.5);
  EXPECT_DOUBLE_EQ(
      score_json(test).at("perplexity").get<double>(), std::exp2(test.bits_per_byte()));
  testing::expect_same_bits(*results[0].model, *testing::train_all(o, set)[0].model);
  expect_planned_traffic(o, set, results[0]);
}

INSTANTIATE_TEST_SUITE_P(
    All, TextRun,
    ::testing::Values(
        TextCase{"ab", 4, [](auto&) {}},
        TextCase{
            "ab_split_untied", 4,
            [](auto& o) {
              o.model.split_qkv = true;
              o.model.tied = false;
              o.model.positions = nn::Positions::Rotary;
              o.model.activation = nn::Activation::SwiGlu;
              o.model.drop_rate = 0.05;
            }},
        TextCase{
            "ab_muon", 2,
            [](auto& o) {
              o.method.rank.rule = linalg::RankRuleName::Ratio;
              o.method.rank.ratio = 1.5;
              o.optimizer.name = "muon";
            }},
        TextCase{
            "ddp_accumulate", 3,
            [](auto& o) {
              o.method.name = "ddp";
              o.train.accumulate = 2;
            }},
        TextCase{
            "ab_bf16_rotary", 2,
            [](auto& o) {
              o.model.positions = nn::Positions::Rotary;
              o.train.precision = at::kBFloat16;
              o.model.features = 128;  // some products are large enough
            }},
        TextCase{
            "ddp_powersgd", 3,
            [](auto& o) {
              o.method.name = "ddp";
              o.reducer.name = "powersgd";
              o.reducer.min_numel = 64;
            }},
        TextCase{
            "ddp_thc", 3,
            [](auto& o) {
              o.method.name = "ddp";
              o.reducer.name = "thc";
              o.reducer.min_numel = 64;
            }},
        TextCase{
            "ddp_cd_grab", 2,
            [](auto& o) {
              o.method.name = "ddp";
              o.order.name = "cd-grab";
            }},
        TextCase{
            "ddp_cd_grab_examples", 2,
            [](auto& o) {
              o.method.name = "ddp";
              o.order.name = "cd-grab";
              o.order.unit = orders::OrderUnit::Example;
            }},
        TextCase{"local_sgd", 3, [](auto& o) { o.method.name = "local-sgd"; }},
        TextCase{
            "diloco_fragments", 3,
            [](auto& o) {
              o.method.name = "diloco";
              o.method.fragments = 2;
              o.method.delay = 2;
            }},
        TextCase{
            "muloco", 3,
            [](auto& o) {
              o.method.name = "diloco";
              o.optimizer.name = "muon";
            }}),
    [](const auto& test) { return std::string(test.param.name); });

// What an evaluation counts does not depend on how many workers share it.
TEST(TextRuns, ScoreIsTheMeanOverAllTokens) {
  const data::Dataset set = testing::toy_text();
  std::vector<double> losses;
  for (const int workers : {1, 3}) {
    config::RunOptions o = testing::toy_text_options(workers, 1);
    o.method.name = "ddp";
    o.train.steps = 1;
    o.optimizer.lr = 0;
    o.evaluate.batch_size = workers == 1 ? 32 : 5;
    losses.push_back(testing::train_all(o, set)[0].test.loss);
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  EXPECT_NEAR(losses[0], std::log(16.0), 0.2);  // it knows nothing yet
}

// Rows of tokens with labels of their own: beside LibTorch's cross-entropy of
// the labels that count.
TEST(TextRuns, IgnoredLabelsDoNotCount) {
  data::Dataset set = testing::toy_text();
  set.vocabulary = 20;  // more tokens than classes
  const at::Tensor tokens = at::randint(20, {40, 8}, at::kLong);
  at::Tensor labels = at::randint(16, {40, 8}, at::kLong);
  labels.masked_fill_(at::rand({40, 8}) < 0.3, data::kIgnoredLabel);
  labels[0].fill_(data::kIgnoredLabel);
  set.train = set.test = data::token_rows(tokens, labels);
  for (const int workers : {1, 3}) {
    config::RunOptions o = testing::toy_text_options(workers, 1);
    o.method.name = "ddp";
    o.train.steps = 3;
    o.evaluate.batch_size = 7;
    const auto results = testing::train_all(o, set);
    const at::NoGradGuard no_grad;
    const at::Tensor logits =
        results[0].model->forward(tokens, false).flatten(0, 1).to(at::kDouble);
    ASSERT_EQ(logits.size(1), 20);
    const at::Tensor counts = labels.flatten() != data::kIgnoredLabel;
    const at::Tensor kept = labels.flatten().masked_select(counts);
    const at::Tensor rows = logits.index({counts});
    EXPECT_NEAR(results[0].test.loss, at::cross_entropy_loss(rows, kept).item<double>(), 1e-6);
    EXPECT_DOUBLE_EQ(
        results[0].test.accuracy, (rows.argmax(1) == kept).to(at::kDouble).mean().item<double>());
    EXPECT_FALSE(results[0].test.is_text());
  }
}

}  // namespace
}  // namespace abtrain::train
