#include "data/pair_order.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "base/text.h"
#include "data/order.h"
#include "ops/pair_balance.h"

namespace abtrain::data {
namespace {

using Order = std::vector<std::int64_t>;

Order ascending(std::int64_t count) {
  Order order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// An epoch of all workers, whose gradients (workers x units x numel) stay the
// same; the sum goes on from worker to worker.
void balance_epoch(
    const at::Tensor& gradients,
    std::vector<PairOrder>& orders,
    const at::Tensor& sum) {
  const auto workers = static_cast<std::int64_t>(orders.size());
  sum.zero_();
  const at::Tensor signs = at::empty({workers}, at::kChar);
  for (std::int64_t l = 0; l < orders[0].pairs(); ++l) {
    const at::Tensor rows = at::empty({workers, gradients.size(2)});
    for (std::int64_t j = 0; j < workers; ++j) {
      const Order& order = orders[static_cast<std::size_t>(j)].order();
      const auto k = static_cast<std::size_t>(2 * l);
      rows[j].copy_(gradients[j][order[k]] - gradients[j][order[k + 1]]);
    }
    ops::pair_balance(sum, rows, signs);
    for (std::int64_t j = 0; j < workers; ++j) {
      orders[static_cast<std::size_t>(j)].decide(signs[j].item<int>());
    }
  }
  for (PairOrder& order : orders) {
    order.end_epoch();
  }
}

// The specification's golden integers.
TEST(PairOrder, GivesTheOrdersOfTheWorkedExample) {
  const at::Tensor gradients = at::tensor(
                                   {3,  1, -2, 4, 5,  -1, 0, -3, -4, 2,  1, 1,
                                    -1, 2, 2,  2, -3, -3, 4, 0,  1,  -5, 0, 2},
                                   at::kFloat)
                                   .view({2, 6, 2});
  struct Epoch {
    Order first, second;
    std::vector<float> sum;
  };
  const Epoch epochs[] = {
      {{0, 3, 4, 5, 2, 1}, {0, 3, 5, 4, 2, 1}, {-2, 6}},
      {{0, 5, 1, 2, 4, 3}, {0, 4, 2, 1, 5, 3}, {-8, -2}},
      {{0, 2, 4, 3, 1, 5}, {0, 2, 3, 5, 1, 4}, {2, 0}}};
  std::vector<PairOrder> orders(2, PairOrder(ascending(6)));
  const at::Tensor sum = at::zeros({2});
  for (const Epoch& epoch : epochs) {
    balance_epoch(gradients, orders, sum);
    EXPECT_EQ(orders[0].order(), epoch.first);
    EXPECT_EQ(orders[1].order(), epoch.second);
    EXPECT_TRUE(sum.equal(at::tensor(epoch.sum)));
  }
}

TEST(PairOrder, AnOddLastUnitTakesTheMiddle) {
  PairOrder order({4, 3, 2, 1, 0});
  order.decide(1);
  order.decide(-1);
  order.end_epoch();
  EXPECT_EQ(order.order(), (Order{4, 1, 0, 2, 3}));
  PairOrder one({0});
  one.end_epoch();
  EXPECT_EQ(one.order(), Order{0});
}

TEST(PairOrder, StaysAPermutation) {
  for (const std::int64_t count : {2, 3, 10, 11}) {
    PairOrder order(ascending(count));
    for (int epoch = 0; epoch < 20; ++epoch) {
      for (std::int64_t l = 0; l < order.pairs(); ++l) {
        order.decide((l * 7 + epoch) % 3 == 0 ? -1 : 1);
      }
      order.end_epoch();
      Order sorted = order.order();
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, ascending(count));
    }
  }
}

TEST(PairOrder, RefusesWhatDoesNotFit) {
  PairOrder order(ascending(4));
  EXPECT_THROW(order.decide(0), std::logic_error);
  order.decide(1);
  EXPECT_THROW(order.end_epoch(), std::logic_error);
  order.decide(1);
  EXPECT_THROW(order.decide(1), std::logic_error);
}

constexpr std::int64_t kWorkers = 64;
constexpr std::int64_t kUnits = 250;
constexpr std::int64_t kNumel = 16;

// The largest component of a prefix sum over the workers' steps, of vectors
// less their mean.
double herding(
    const at::Tensor& vectors,
    const std::vector<PairOrder>& orders) {
  at::Tensor steps = at::zeros({kUnits, kNumel}, at::kDouble);
  for (std::int64_t j = 0; j < kWorkers; ++j) {
    steps.add_(
        vectors[j]
            .index_select(
                0,
                at::tensor(
                    orders[static_cast<std::size_t>(j)].order(), at::kLong))
            .to(at::kDouble));
  }
  steps.sub_(steps.mean(0));
  return steps.cumsum(0).abs().max().item<double>();
}

// The specification's gate: random unit vectors, ten rounds.
TEST(PairOrder, KeepsPrefixSumsSmallWhereWorkersCoordinate) {
  at::Tensor vectors = at::randn(
      {kWorkers, kUnits, kNumel},
      at::detail::createCPUGenerator(1),
      at::kFloat);
  vectors.div_(vectors.norm(2, {2}, true));
  std::vector<PairOrder> shuffled;
  for (std::int64_t j = 0; j < kWorkers; ++j) {
    shuffled.emplace_back(permutation(
        kUnits,
        Random(1, RandomPurpose::Shuffle, static_cast<std::uint32_t>(j))));
  }
  std::vector<PairOrder> together = shuffled;
  std::vector<PairOrder> alone = shuffled;
  const at::Tensor sum = at::zeros({kNumel});
  for (int round = 0; round < 10; ++round) {
    balance_epoch(vectors, together, sum);
    for (std::int64_t j = 0; j < kWorkers; ++j) {
      std::vector<PairOrder> one = {alone[static_cast<std::size_t>(j)]};
      balance_epoch(vectors.narrow(0, j, 1), one, sum);
      alone[static_cast<std::size_t>(j)] = one[0];
    }
  }
  EXPECT_LE(herding(vectors, together), 3);
  EXPECT_GE(herding(vectors, alone), 10);
  EXPECT_GE(herding(vectors, shuffled), 30);
  RecordProperty("together", str(herding(vectors, together)));
  RecordProperty("alone", str(herding(vectors, alone)));
  RecordProperty("shuffled", str(herding(vectors, shuffled)));
}

}  // namespace
}  // namespace abtrain::data
