// Whole runs with each reducer: replicas stay equal, the plan is what the meter
// counts, and what is learned survives the compression.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compress/schemes.h"
#include "reducer_words.h"
#include "train/whole_runs.h"

namespace abtrain::train {
namespace {

struct ReducerCase {
  std::string method;
  std::string reducer;
  int workers;
  std::int64_t dense_steps = 0;
  const char* transport = "int8";  // of hylo
};

class ReducerRun : public ::testing::TestWithParam<ReducerCase> {};

config::RunOptions reducer_options(const ReducerCase& c) {
  config::RunOptions o = testing::toy_options(c.workers, c.workers == 4 ? 2 : 1);
  o.method.name = c.method;
  o.method.sync_every = Duration::steps(40);  // which forgets the residuals
  o.train.steps = o.method.name == "ab" ? 160 : 60;
  o.reducer.name = c.reducer;
  o.reducer.min_numel = 64;     // all but the biases and the classifier
  o.reducer.bucket_mb = 0.001;  // several buckets
  o.reducer.dense_steps = c.dense_steps;
  o.reducer.block = 64;
  o.reducer.bits = 4;
  o.reducer.threshold = 3e-3;
  o.reducer.rank = 2;
  set_option(o.reducer, "transport", c.transport);
  // Signs of Adam's first steps say little about the gradients.
  o.optimizer.name = "sgd";
  o.optimizer.momentum = 0.9;
  o.optimizer.lr = 0.1;
  o.optimizer.weight_decay = 0;
  return o;
}

// The accuracy of the same run without compression, which many cases share.
double exact_accuracy(config::RunOptions o, const data::Dataset& dataset) {
  static std::map<std::pair<std::string, int>, double> known;
  o.reducer = {};
  const auto [entry, is_new] = known.try_emplace({o.method.name, o.workers});
  if (is_new) {
    entry->second = testing::train_all(o, dataset)[0].test.accuracy;
  }
  return entry->second;
}

TEST_P(ReducerRun, LearnsAndSendsWhatThePlanSays) {
  const config::RunOptions o = reducer_options(GetParam());
  const data::Dataset dataset = testing::toy_dataset(256);
  // check_replicas: 1 compares parameters and moments after each step.
  const auto results = testing::train_all(o, dataset);
  expect_planned_traffic(o, dataset, results[0]);
  const double exact = exact_accuracy(o, dataset);
  EXPECT_GT(exact, 0.9);
  EXPECT_GT(results[0].test.accuracy, exact - 0.1);
}

TEST_P(ReducerRun, AloneItIsPlainTraining) {
  ReducerCase c = GetParam();
  c.workers = 1;
  config::RunOptions o = reducer_options(c);
  o.method.sync = methods::SyncMode::OnlyB;
  const data::Dataset dataset = testing::toy_dataset(64);
  o.train.steps = 12;
  const auto results = testing::train_all(o, dataset);
  o.reducer = {};
  const auto plain = testing::train_all(o, dataset);
  testing::expect_same_bits(*results[0].model, *plain[0].model);
}

std::vector<ReducerCase> reducer_cases() {
  std::vector<ReducerCase> cases = {{"ddp", "hylo", 4, 5, "a2a"}, {"ddp", "hylo", 2, 0, "gather"}};
  for (const compress::Scheme* scheme : compress::schemes()) {
    if (scheme->compresses) {
      cases.push_back({"ddp", scheme->name, 3});
      cases.push_back({"ab", scheme->name, 4});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(
    All, ReducerRun, ::testing::ValuesIn(reducer_cases()), [](const auto& test) {
      const ReducerCase& c = test.param;
      std::string name =
          c.method + "_" + c.reducer + "_" + std::to_string(c.workers) + "_" + c.transport;
      std::ranges::replace(name, '-', '_');
      return name;
    });

}  // namespace
}  // namespace abtrain::train
