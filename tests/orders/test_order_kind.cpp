#include "orders/order_kind.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "ops/pair_signs.h"

namespace abtrain::orders {
namespace {

OrderOptions examples_of(const std::string& name) {
  OrderOptions options;
  options.name = name;
  options.unit = OrderUnit::Example;
  return options;
}

TEST(OrderKinds, AreFoundByName) {
  for (const std::string& name : order_names()) {
    EXPECT_EQ(kind_of(examples_of(name)).name, name);
  }
  EXPECT_EQ(order_names().size(), 5u);
  EXPECT_EQ(
      error_of([] { kind_of(examples_of("random")); }),
      Thrown(
          78,
          "order.name: expected one of shuffle, sequential, grab, id-grab, "
          "cd-grab; got 'random'"));
}

TEST(OrderKinds, ThoseKnownInAdvanceAreMade) {
  for (const std::string& name : order_names()) {
    const OrderKind& kind = kind_of(examples_of(name));
    EXPECT_EQ(kind.is_balanced(), name.ends_with("grab")) << name;
    if (!kind.is_balanced()) {
      EXPECT_EQ(kind.make({10, 1, 2, 7})->examples_per_epoch(), 5) << name;
    }
  }
}

TEST(OrderKinds, ExamplesAreBalancedWhereAStepHasSeveral) {
  EXPECT_TRUE(balances_examples(examples_of("grab"), 2));
  EXPECT_FALSE(balances_examples(examples_of("grab"), 1));
  EXPECT_FALSE(balances_examples(examples_of("shuffle"), 2));
  OrderOptions options = examples_of("grab");
  options.unit = OrderUnit::Microbatch;
  EXPECT_FALSE(balances_examples(options, 2));
}

TEST(OrderCheck, LimitsTheBatchesOfExamples) {
  EXPECT_TRUE(check(examples_of("cd-grab"), ops::kMaxPairRows, 1).empty());
  EXPECT_EQ(check(examples_of("cd-grab"), ops::kMaxPairRows + 2, 1).size(), 1u);
  EXPECT_TRUE(check(examples_of("shuffle"), 1 << 20, 1).empty());
  // Pairs need an even number; grab decides on single units.
  EXPECT_EQ(check(examples_of("id-grab"), 7, 1).size(), 1u);
  EXPECT_TRUE(check(examples_of("grab"), 7, 1).empty());
  // One image per step is a microbatch.
  EXPECT_TRUE(check(examples_of("id-grab"), 1, 1).empty());
  EXPECT_EQ(check(examples_of("id-grab"), 1, 2).size(), 1u);
}

}  // namespace
}  // namespace abtrain::orders
