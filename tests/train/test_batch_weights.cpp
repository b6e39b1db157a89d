// Labels that do not count: a step learns from the mean over all others, whatever workers and
// micro-batches they are spread over.
#include "train/batch_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "comm/run_workers.h"
#include "config/check_run.h"
#include "data/arrays/array_set.h"
#include "error_of.h"
#include "orders/order_kind.h"
#include "toy_text.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

using testing::train_all;

constexpr std::int64_t kRows = 96;
constexpr std::int64_t kContext = 8;

// From all labels of a row to none, in no order.
data::Dataset masked_text() {
  data::Dataset set = testing::toy_text();
  set.vocabulary = testing::kToyTokens;
  set.ignores_labels = true;
  const auto generator = at::detail::createCPUGenerator(5);
  const at::Tensor tokens =
      at::randint(testing::kToyTokens, {kRows, kContext}, generator, at::kLong);
  at::Tensor labels = (tokens * 5 + 3) % testing::kToyTokens;
  const at::Tensor shares = at::rand({kRows, 1}, generator);
  labels.masked_fill_(at::rand({kRows, kContext}, generator) < shares, data::kIgnoredLabel);
  labels.slice(0, 0, kRows, 7).fill_(data::kIgnoredLabel);
  set.train = data::token_rows(tokens, labels);
  set.test = data::token_rows(tokens, labels);
  return set;
}

config::RunOptions masked_options(
    int workers, std::int64_t batch, std::int64_t accumulate, const std::string& method = "ddp") {
  config::RunOptions o = testing::toy_text_options(workers, 1);
  o.method.name = method;
  o.data.batch_size = batch;
  o.train.accumulate = accumulate;
  o.train.label_smoothing = 0.1;
  o.train.clip_norm = 0;
  o.train.steps = 10;  // more than an epoch
  o.optimizer.name = "sgd";
  o.optimizer.momentum = 0;
  o.optimizer.weight_decay = 0;
  o.optimizer.lr = 0.1;
  o.schedule.name = optim::ScheduleName::Constant;
  o.evaluate.every = Duration::steps(0);
  return o;
}

// Relative to the largest number.
double difference(const nn::Model& a, const nn::Model& b) {
  double largest = 0;
  for (const at::Tensor& tensor : testing::tensors_of(a)) {
    largest = std::max(largest, tensor.abs().max().item<double>());
  }
  return largest_difference(a, b) / largest;
}

TEST(BatchWeights, OneStepForAllSplits) {
  const data::Dataset set = masked_text();
  const auto alone = train_all(masked_options(1, 12, 1), set);
  for (const auto& [workers, batch, accumulate] :
       {std::tuple{1, 1, 12}, {1, 4, 3}, {2, 6, 1}, {3, 2, 2}, {4, 1, 3}, {12, 1, 1}}) {
    const auto split = train_all(masked_options(workers, batch, accumulate), set);
    EXPECT_LT(difference(*split[0].model, *alone[0].model), 1e-6)
        << workers << " workers, batches of " << batch << ", " << accumulate << " per step";
  }
}

TEST(BatchWeights, UnequalBatchesToo) {
  const data::Dataset set = masked_text();
  for (const std::string order : {"shuffle", "sequential"}) {
    config::RunOptions o = masked_options(3, 2, 2);
    o.order.name = order;
    o.balance.speeds = {1, 4, 1};
    config::RunOptions single = masked_options(1, 12, 1);
    single.order.name = order;
    EXPECT_LT(difference(*train_all(o, set)[0].model, *train_all(single, set)[0].model), 1e-6)
        << order;
  }
}

// A worker that trains alone learns from its own labels, and a group from those of its members.
TEST(BatchWeights, AreThoseOfTheWorkersThatAverage) {
  const data::Dataset set = masked_text();
  for (const std::string method : {"local-sgd", "diloco"}) {
    config::RunOptions whole = masked_options(2, 6, 1, method);
    whole.method.warmup_steps = Duration::steps(3);
    whole.method.sync_every = Duration::steps(2);
    config::RunOptions split = whole;
    split.data.batch_size = 2;
    split.train.accumulate = 3;
    EXPECT_LT(difference(*train_all(split, set)[0].model, *train_all(whole, set)[0].model), 2e-6)
        << method;
  }
  // Groups of one and of three, which take other examples: one step, in the AB phase from the
  // start.
  config::RunOptions group = masked_options(1, 12, 1, "ab");
  group.method.warmup_steps = Duration::steps(0);
  group.method.trains = methods::Trains::Both;
  config::RunOptions split = group;
  split.workers = 3;
  split.data.batch_size = 2;
  split.train.accumulate = 2;
  split.method.group_size = 3;
  EXPECT_LT(difference(*train_all(split, set)[0].model, *train_all(group, set)[0].model), 1e-5);
}

// What an order by single examples sees adds up to the step's gradient.
TEST(BatchWeights, HoldForGradientsOfSingleExamples) {
  const data::Dataset set = masked_text();
  config::RunOptions o = masked_options(1, 4, 3);
  o.train.steps = 8;  // an epoch, the same for all orders
  const auto plain = train_all(o, set);
  o.order.name = "grab";
  o.order.unit = orders::OrderUnit::Example;
  EXPECT_LT(difference(*train_all(o, set)[0].model, *plain[0].model), 1e-5);
  o.train.steps = 20;
  train_all(o, set);  // the next epochs become known in time
}

TEST(BatchWeights, AreZeroWithoutAnyLabel) {
  data::Dataset set = masked_text();
  auto& rows = std::get<data::TokenRows>(set.train);
  at::Tensor labels = rows.answers.clone();
  labels.narrow(0, 0, 12).fill_(data::kIgnoredLabel);
  rows = data::token_rows(rows.tokens, labels);
  for (const int workers : {1, 3}) {
    config::RunOptions o = masked_options(workers, 12 / workers, 1);
    o.order.name = "sequential";
    o.train.steps = 1;
    const auto results = train_all(o, set);
    o.optimizer.lr = 0;
    testing::expect_same_bits(*results[0].model, *train_all(o, set)[0].model);
  }
}

TEST(BatchWeights, AreSharesOfTheLabels) {
  // Rows with 2, 0, 3 and 1 labels.
  at::Tensor labels = at::arange(16).view({4, 4});
  labels[0].narrow(0, 0, 2).fill_(data::kIgnoredLabel);
  labels[1].fill_(data::kIgnoredLabel);
  labels[2][3].fill_(data::kIgnoredLabel);
  labels[3].narrow(0, 0, 3).fill_(data::kIgnoredLabel);
  const data::Examples rows = data::token_rows(labels, labels);
  config::RunOptions o = masked_options(2, 1, 2);
  o.order.name = "sequential";
  comm::run_workers(2, 60, [&](comm::Communicator& world) {
    const data::OrderSetting setting{4, world.rank(), 2, 0, {1, 1}};
    const auto order = orders::kind_of(o.order).make(setting);
    BatchWeights weights(o, rows, setting, *order);
    // Worker 0 has rows 0 and 2, worker 1 has rows 1 and 3.
    const std::vector<double> own =
        world.rank() == 0 ? std::vector<double>{2, 3} : std::vector<double>{0, 1};
    weights.begin(0, nullptr);
    EXPECT_TRUE(weights.has_labels());
    for (const auto k : {0, 1}) {
      const double labels_of_batch = own[static_cast<std::size_t>(k)];
      EXPECT_DOUBLE_EQ(weights.of_gradient(k), 2 * labels_of_batch / (own[0] + own[1]));
      EXPECT_DOUBLE_EQ(weights.of_loss(k), labels_of_batch / (own[0] + own[1]));
    }
    weights.begin(0, &world);
    for (const auto k : {0, 1}) {
      const double labels_of_batch = own[static_cast<std::size_t>(k)];
      EXPECT_DOUBLE_EQ(weights.of_gradient(k), 4 * labels_of_batch / 6);
      EXPECT_DOUBLE_EQ(weights.of_loss(k), labels_of_batch / (own[0] + own[1]));
    }
  });
  // Where all labels count, nothing is weighted.
  const data::Examples whole = data::token_rows(labels, at::arange(16).view({4, 4}));
  EXPECT_FALSE(whole.counted_labels().defined());
  const data::OrderSetting setting{4, 0, 2, 0, {1, 1}};
  const auto order = orders::kind_of(o.order).make(setting);
  EXPECT_EQ(make_batch_weights(o, whole, setting, *order), nullptr);
}

TEST(BatchWeights, NeedAnOrderThatIsKnownInAdvance) {
  const data::Dataset set = masked_text();
  config::RunOptions o = masked_options(2, 4, 1);
  for (const std::string order : {"grab", "id-grab", "cd-grab"}) {
    o.order.name = order;
    o.workers = 2;
    expect_error(
        [&] { config::check_run(o, set, kRows); }, ErrorKind::Config,
        {"order.name: " + order, "some labels of the data are -100", "2 workers", "shuffle"});
    o.workers = 1;
    config::check_run(o, set, kRows);
  }
}

}  // namespace
}  // namespace abtrain::train
