// The formula; tests/plan compares whole runs with the traffic meter.
#include "orders/order_traffic.h"

#include <gtest/gtest.h>

#include "orders/difference_wire.h"

namespace abtrain::orders {
namespace {

constexpr std::int64_t kTrafficNumel = 1000;
constexpr int kTrafficWorkers = 4;
const RunLength kLength{5, 20};

OrderOptions named(const std::string& name) {
  OrderOptions options;
  options.name = name;
  return options;
}

TEST(OrderTraffic, IsNothingWhereEachWorkerDecidesAlone) {
  for (const char* name : {"shuffle", "sequential", "grab", "id-grab"}) {
    EXPECT_FALSE(order_traffic(named(name), 8, 1, kLength)) << name;
  }
}

TEST(OrderTraffic, OfMicrobatchesComesWithEachSecondStepOfAnEpoch) {
  const OrderOptions options = named("cd-grab");
  const OrderTraffic bytes = order_traffic(options, 8, 2, kLength);
  for (int member = 0; member < kTrafficWorkers; ++member) {
    const std::int64_t pair =
        difference_bytes(options, kTrafficNumel, 1, kTrafficWorkers, member);
    for (std::int64_t t = 0; t < 12; ++t) {
      EXPECT_EQ(
          bytes(t, 0, kTrafficNumel, kTrafficWorkers, member),
          t % 5 % 2 == 1 ? pair : 0)
          << t;
    }
    // A pair needs both of its steps with the same parameters.
    EXPECT_EQ(bytes(3, 3, kTrafficNumel, kTrafficWorkers, member), 0);
    EXPECT_EQ(bytes(3, 2, kTrafficNumel, kTrafficWorkers, member), pair);
  }
}

TEST(OrderTraffic, OfExamplesComesWithEachBatch) {
  OrderOptions options = named("cd-grab");
  options.unit = OrderUnit::Example;
  options.wire = OrderWire::Int8;
  const OrderTraffic bytes = order_traffic(options, 8, 3, kLength);
  for (std::int64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(
        bytes(t, 0, kTrafficNumel, kTrafficWorkers, 1),
        3 * difference_bytes(options, kTrafficNumel, 4, kTrafficWorkers, 1));
  }
}

}  // namespace
}  // namespace abtrain::orders
