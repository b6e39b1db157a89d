// The formula; test_order_runs.cpp compares whole runs with the traffic meter.
#include <gtest/gtest.h>

#include "orders/difference_wire.h"
#include "plan/traffic.h"

namespace abtrain::plan {
namespace {

constexpr std::int64_t kTrafficNumel = 1000;
constexpr int kTrafficWorkers = 4;
const RunLength kLength{5, 20};

config::RunOptions order_named(const std::string& name) {
  config::RunOptions options;
  options.data.batch_size = 8;
  options.order.name = name;
  return options;
}

TEST(OrderTraffic, IsNothingWhereEachWorkerDecidesAlone) {
  for (const char* name : {"shuffle", "sequential", "grab", "id-grab"}) {
    EXPECT_FALSE(order_traffic(order_named(name), kLength)) << name;
  }
}

TEST(OrderTraffic, OfMicrobatchesComesWithEachSecondStepOfAnEpoch) {
  config::RunOptions options = order_named("cd-grab");
  options.train.accumulate = 2;
  const methods::StepTraffic bytes = order_traffic(options, kLength);
  for (int member = 0; member < kTrafficWorkers; ++member) {
    const std::int64_t pair =
        orders::difference_bytes(options.order, kTrafficNumel, 1, kTrafficWorkers, member);
    const auto between = [&](std::int64_t first, std::int64_t end) {
      return bytes(first, end, kTrafficNumel, {kTrafficWorkers, member});
    };
    for (std::int64_t t = 0; t < 12; ++t) {
      EXPECT_EQ(between(0, t + 1) - between(0, t), t % 5 % 2 == 1 ? pair : 0) << t;
    }
    // A pair needs both of its steps with the same parameters.
    EXPECT_EQ(between(3, 4), 0);
    EXPECT_EQ(between(2, 4), pair);
  }
}

TEST(OrderTraffic, OfExamplesComesWithEachBatch) {
  config::RunOptions options = order_named("cd-grab");
  options.train.accumulate = 3;
  options.order.unit = orders::OrderUnit::Example;
  options.order.wire = orders::OrderWire::Int8;
  const methods::StepTraffic bytes = order_traffic(options, kLength);
  for (std::int64_t t = 0; t < 7; ++t) {
    EXPECT_EQ(
        bytes(0, t, kTrafficNumel, {kTrafficWorkers, 1}),
        t * 3 * orders::difference_bytes(options.order, kTrafficNumel, 4, kTrafficWorkers, 1));
  }
}

}  // namespace
}  // namespace abtrain::plan
