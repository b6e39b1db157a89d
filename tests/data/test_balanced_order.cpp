#include "data/balanced_order.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "data/data_files.h"
#include "data/order.h"

namespace abtrain::data {
namespace {

// An epoch of all workers, whose gradients (workers x units x numel) stay the
// same; the sum goes on from worker to worker.
void balance_epoch(
    const at::Tensor& gradients, std::vector<BalancedOrder>& orders, const at::Tensor& sum) {
  const auto workers = static_cast<std::int64_t>(orders.size());
  sum.zero_();
  for (std::int64_t k = 0; k + 1 < gradients.size(1); k += 2) {
    for (std::int64_t j = 0; j < workers; ++j) {
      BalancedOrder& order = orders[static_cast<std::size_t>(j)];
      const auto place = static_cast<std::size_t>(k);
      const at::Tensor row =
          gradients[j][order.order()[place]] - gradients[j][order.order()[place + 1]];
      const int sign = at::dot(sum, row).item<double>() <= 0 ? 1 : -1;
      sum.add_(row, sign);
      order.decide_pair(sign);
    }
  }
  for (BalancedOrder& order : orders) {
    order.end_epoch();
  }
}

// The specification's golden integers.
TEST(BalancedOrder, GivesTheOrdersOfTheWorkedExample) {
  const at::Tensor gradients =
      at::tensor(
          {3, 1, -2, 4, 5, -1, 0, -3, -4, 2, 1, 1, -1, 2, 2, 2, -3, -3, 4, 0, 1, -5, 0, 2},
          at::kFloat)
          .view({2, 6, 2});
  struct Epoch {
    Indices first, second;
    std::vector<float> sum;
  };
  const Epoch epochs[] = {
      {{0, 3, 4, 5, 2, 1}, {0, 3, 5, 4, 2, 1}, {-2, 6}},
      {{0, 5, 1, 2, 4, 3}, {0, 4, 2, 1, 5, 3}, {-8, -2}},
      {{0, 2, 4, 3, 1, 5}, {0, 2, 3, 5, 1, 4}, {2, 0}}};
  std::vector<BalancedOrder> orders(2, BalancedOrder(first(6)));
  const at::Tensor sum = at::zeros({2});
  for (const Epoch& epoch : epochs) {
    balance_epoch(gradients, orders, sum);
    EXPECT_EQ(orders[0].order(), epoch.first);
    EXPECT_EQ(orders[1].order(), epoch.second);
    EXPECT_TRUE(sum.equal(at::tensor(epoch.sum)));
  }
}

TEST(BalancedOrder, AnOddLastUnitTakesTheMiddle) {
  BalancedOrder order({4, 3, 2, 1, 0});
  order.decide_pair(1);
  order.decide_pair(-1);
  order.end_epoch();
  EXPECT_EQ(order.order(), (Indices{4, 1, 0, 2, 3}));
  BalancedOrder one({0});
  one.end_epoch();
  EXPECT_EQ(one.order(), Indices{0});
}

TEST(BalancedOrder, StaysAPermutation) {
  for (const std::int64_t count : {2, 3, 10, 11}) {
    BalancedOrder order(first(count));
    for (int epoch = 0; epoch < 20; ++epoch) {
      for (std::int64_t l = 0; l < count / 2; ++l) {
        order.decide_pair((l * 7 + epoch) % 3 == 0 ? -1 : 1);
      }
      order.end_epoch();
      Indices sorted = order.order();
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, first(count));
    }
  }
}

// The first of 4 units comes early, the others late.
TEST(BalancedOrder, TakesUnitsOneByOne) {
  BalancedOrder order({3, 1, 0, 2});
  order.decide_unit(1);
  order.decide_unit(-1);
  order.decide_unit(-1);
  order.decide_unit(-1);
  order.end_epoch();
  EXPECT_EQ(order.order(), (Indices{3, 2, 0, 1}));
}

TEST(BalancedOrder, GoesOnFromWhatWasSaved) {
  BalancedOrder order(first(7));
  order.decide_pair(1);
  order.decide_pair(-1);
  order.decide_pair(1);
  order.end_epoch();
  order.decide_pair(-1);
  order.decide_pair(-1);
  BalancedOrder other(first(7));
  ASSERT_TRUE(other.restore(order.save()));
  for (BalancedOrder* each : {&order, &other}) {
    EXPECT_EQ(each->save().front(), 4);  // decided so far
    each->decide_pair(1);
    each->end_epoch();
  }
  EXPECT_EQ(order.order(), other.order());
}

TEST(BalancedOrder, RefusesWhatIsNoOrder) {
  BalancedOrder order(first(4));
  order.decide_pair(1);
  const Indices good = order.save();
  for (std::size_t i = 0; i < good.size(); ++i) {
    Indices bad = good;
    bad[i] = 9;
    EXPECT_FALSE(BalancedOrder(first(4)).restore(bad)) << i;
    bad.resize(i);
    EXPECT_FALSE(BalancedOrder(first(4)).restore(bad)) << i;
  }
  EXPECT_FALSE(BalancedOrder(first(5)).restore(good));
}

TEST(BalancedOrder, RefusesWhatDoesNotFit) {
  BalancedOrder order(first(4));
  EXPECT_THROW(order.decide_pair(0), std::logic_error);
  order.decide_pair(1);
  EXPECT_THROW(order.end_epoch(), std::logic_error);
  order.decide_pair(1);
  EXPECT_THROW(order.decide_pair(1), std::logic_error);
}

}  // namespace
}  // namespace abtrain::data
