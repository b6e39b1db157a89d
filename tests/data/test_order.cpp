#include "data/order.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>
#include <set>

#include "data/arrays/array_set.h"
#include "data/data_files.h"

namespace abtrain::data {
namespace {

using MakeOrder = std::unique_ptr<ExampleOrder> (*)(const OrderSetting&);

class Order : public ::testing::TestWithParam<MakeOrder> {
 protected:
  std::unique_ptr<ExampleOrder> make(
      std::int64_t examples, int worker, int workers, std::uint64_t seed = 1) {
    return GetParam()({examples, worker, workers, seed});
  }
};

TEST_P(Order, SharesAreDisjointAndOfOneSize) {
  for (const std::int64_t examples : {0, 1, 7, 64, 101}) {
    for (int workers = 1; workers <= 8; ++workers) {
      for (const std::int64_t epoch : {0, 1, 5}) {
        std::set<std::int64_t> seen;
        for (int worker = 0; worker < workers; ++worker) {
          const auto order = make(examples, worker, workers);
          const Indices mine = order->epoch(epoch);
          ASSERT_EQ(order->examples_per_epoch(), examples / workers);
          ASSERT_EQ(std::ssize(mine), examples / workers);
          for (const std::int64_t index : mine) {
            ASSERT_TRUE(index >= 0 && index < examples);
            ASSERT_TRUE(seen.insert(index).second) << index << " twice";
          }
        }
      }
    }
  }
}

TEST_P(Order, LeftOversTakeTurns) {
  // 7 of 4: three are left over, and none of them for ever.
  std::set<std::int64_t> seen;
  for (int epoch = 0; epoch < 40; ++epoch) {
    for (int worker = 0; worker < 4; ++worker) {
      const Indices mine = make(7, worker, 4)->epoch(epoch);
      seen.insert(mine.begin(), mine.end());
    }
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST_P(Order, SameCallSameAnswer) {
  EXPECT_EQ(make(50, 1, 3)->epoch(4), make(50, 1, 3)->epoch(4));
}

// Whatever the shares are: each step takes the same examples, and an epoch each
// one at most once; equal batches give what is given without any.
TEST_P(Order, UnequalBatchesTakeTheSameExamplesInEachStep) {
  const std::int64_t examples = 1003;
  const auto taken = [&](const std::vector<std::int64_t>& batches, std::int64_t epoch) {
    std::vector<std::set<std::int64_t>> steps;
    const auto workers = static_cast<int>(batches.size());
    for (int w = 0; w < workers; ++w) {
      const auto order = GetParam()({examples, w, workers, 3, batches});
      const std::int64_t batch = batches[static_cast<std::size_t>(w)];
      const Indices mine = order->epoch(epoch);
      EXPECT_EQ(std::ssize(mine), order->examples_per_epoch());
      steps.resize(static_cast<std::size_t>(full_batches(*order, batch)));
      for (std::size_t i = 0; i < steps.size() * static_cast<std::size_t>(batch); ++i) {
        EXPECT_TRUE(steps[i / static_cast<std::size_t>(batch)].insert(mine[i]).second);
      }
    }
    return steps;
  };
  for (const std::int64_t epoch : {0, 3}) {
    const auto equal = taken({20, 20, 20}, epoch);
    ASSERT_EQ(equal.size(), 16u);
    std::set<std::int64_t> all;
    for (const auto& step : equal) {
      EXPECT_EQ(step.size(), 60u);
      all.insert(step.begin(), step.end());
    }
    EXPECT_EQ(all.size(), 960u);
    EXPECT_EQ(taken({24, 24, 12}, epoch), equal);
    EXPECT_EQ(taken({1, 37, 22}, epoch), equal);
    EXPECT_EQ(taken({58, 1, 1}, epoch), equal);
    EXPECT_EQ(
        GetParam()({examples, 1, 3, 3, {20, 20, 20}})->epoch(epoch),
        GetParam()({examples, 1, 3, 3})->epoch(epoch));
  }
}

// Not the first examples of each step to one worker and the last to another.
TEST(Sequential, UnequalBatchesAreSpreadEvenly) {
  const auto first = [](int worker) {
    return make_sequential({10, worker, 3, 1, {8, 8, 4}})->epoch(0);
  };
  EXPECT_EQ(first(0), (Indices{0, 3, 5, 8}));
  EXPECT_EQ(first(1), (Indices{1, 4, 6, 9}));
  EXPECT_EQ(first(2), (Indices{2, 7}));
}

INSTANTIATE_TEST_SUITE_P(All, Order, ::testing::Values(&make_shuffle, &make_sequential));

TEST(Shuffle, WorkersTakeTurnsInOnePermutation) {
  const Indices all = make_shuffle({24, 0, 1, 9})->epoch(2);
  for (int worker = 0; worker < 3; ++worker) {
    const Indices mine = make_shuffle({24, worker, 3, 9})->epoch(2);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i], all[worker + 3 * i]);
    }
  }
}

TEST(Shuffle, EpochsAndSeedsDiffer) {
  const auto epoch = [](std::uint64_t seed, std::int64_t at) {
    return make_shuffle({100, 0, 1, seed})->epoch(at);
  };
  EXPECT_NE(epoch(1, 0), epoch(1, 1));
  EXPECT_NE(epoch(1, 0), epoch(2, 0));
}

TEST(Shuffle, PermutationsAreEquallyLikely) {
  // Chi-square of the 24 orders of 4: 23 degrees of freedom, mean 23, standard
  // deviation 6.8; 60 is beyond five of them.
  std::map<Indices, int> counts;
  const int draws = 24'000;
  for (std::uint32_t i = 0; i < draws; ++i) {
    ++counts[permutation(4, Random(5, RandomPurpose::Test, i))];
  }
  ASSERT_EQ(counts.size(), 24u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) {
    chi_square += std::pow(count - draws / 24.0, 2) / (draws / 24.0);
  }
  EXPECT_LT(chi_square, 60);
}

TEST(Sequential, FirstEpochIsInOrderAndTheNextGoesOn) {
  EXPECT_EQ(make_sequential({6, 1, 2, 1})->epoch(0), (Indices{1, 3, 5}));
  EXPECT_EQ(make_sequential({6, 1, 2, 1})->epoch(3), (Indices{1, 3, 5}));
  EXPECT_EQ(make_sequential({7, 0, 2, 1})->epoch(1), (Indices{6, 1, 3}));
}

// Each worker has a contiguous part of what belongs together, in a new order in each epoch.
TEST(Shards, EachWorkerHasItsOwnPart) {
  OrderSetting setting{.examples = 23, .workers = 3, .seed = 1};
  for (std::int64_t i = 0; i < 23; ++i) {
    setting.together.push_back(22 - i);
  }
  std::set<std::int64_t> seen;
  for (setting.worker = 0; setting.worker < 3; ++setting.worker) {
    const auto order = make_shuffle(setting);
    ASSERT_EQ(order->examples_per_epoch(), 7);
    Indices first = order->epoch(0);
    const Indices second = order->epoch(1);
    EXPECT_NE(first, second);
    EXPECT_EQ(first, make_shuffle(setting)->epoch(0));
    EXPECT_EQ(
        std::set<std::int64_t>(first.begin(), first.end()),
        std::set<std::int64_t>(second.begin(), second.end()));
    std::ranges::sort(first);
    EXPECT_EQ(first.back() - first.front(), 6);
    EXPECT_EQ(first.back(), 22 - 7 * setting.worker);
    seen.insert(first.begin(), first.end());
  }
  EXPECT_EQ(seen.size(), 21U);
  setting.batches = {1, 2, 4};
  setting.worker = 2;
  EXPECT_EQ(make_shuffle(setting)->examples_per_epoch(), 12);
}

TEST(Shards, ByClassSortsLabelsAndKeepsTexts) {
  ByteImages images;
  images.labels = at::tensor({2, 0, 1, 0, 2, 1, 1}, at::kLong);
  const Indices all = by_class(images, 1);
  std::vector<std::int64_t> labels;
  for (const std::int64_t i : all) {
    labels.push_back(images.labels[i].item<std::int64_t>());
  }
  EXPECT_EQ(labels, (std::vector<std::int64_t>{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), 7U);
  TextWindows text;
  text.places = at::arange(0, 50, 10);
  EXPECT_EQ(by_class(text, 1), (Indices{0, 1, 2, 3, 4}));
  images.targets = at::zeros({7, 1});
  EXPECT_THROW(by_class(images, 1), Error);
  const Examples rows =
      token_rows(at::zeros({3, 4}, at::kLong), at::tensor({1, 0, 1}, at::kInt).to(at::kUInt16));
  EXPECT_EQ(by_class(rows, 1).front(), 1);
}

}  // namespace
}  // namespace abtrain::data
