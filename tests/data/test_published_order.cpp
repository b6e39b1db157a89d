#include "data/published_order.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "data/augment.h"
#include "data/data_files.h"
#include "data/device_images.h"
#include "data/device_loader.h"
#include "data/loader.h"
#include "example_kinds.h"
#include "toy_data.h"

namespace abtrain::data {
namespace {

TEST(PublishedOrder, GivesTheExamplesOfItsUnits) {
  PublishedOrder order({10, 11, 20, 21, 30, 31}, 2);
  EXPECT_EQ(order.units(), 3);
  order.publish(4, {2, 0, 1});
  EXPECT_EQ(order.epoch(4), (Indices{30, 31, 10, 11, 20, 21}));
  EXPECT_THROW(order.epoch(5), std::logic_error);
  EXPECT_THROW(order.publish(4, {0, 1, 2}), std::logic_error);
  EXPECT_THROW(order.publish(5, {0, 1}), std::logic_error);
  EXPECT_THROW(order.publish(5, {0, 1, 3}), std::logic_error);
}

// A worker keeps its part of shuffle's first epoch, in whole steps.
TEST(PublishedOrder, BeginsAsShuffleDoes) {
  const OrderSetting setting{103, 1, 3, 7};
  const auto order = make_published_order(setting, 4, 8);
  EXPECT_EQ(order->units(), 8);
  order->publish(0, first(8));
  Indices shuffled = make_shuffle(setting)->epoch(0);
  shuffled.resize(32);
  EXPECT_EQ(order->epoch(0), shuffled);
}

TEST(PublishedOrder, IsWaitedForUntilItIsKnownOrNotWanted) {
  PublishedOrder order({0, 1}, 1);
  Indices got;
  {
    const std::jthread waiting([&](const std::stop_token& stop) { got = order.wait_for(0, stop); });
    order.publish(0, {1, 0});
  }
  EXPECT_EQ(got, (Indices{1, 0}));
  {
    std::jthread waiting([&](const std::stop_token& stop) { got = order.wait_for(1, stop); });
    waiting.request_stop();
  }
  EXPECT_TRUE(got.empty());
}

// Batches follow epoch by epoch; loaders end while they wait for an order.
TEST(PublishedOrder, FeedsLoadersThatEndWhileTheyWait) {
  const Dataset dataset = testing::toy_dataset(6);
  const Augment augment({}, dataset, 1);
  const Examples none;
  DeviceCopies copies(dataset, none);
  for (const bool on_device : {false, true}) {
    PublishedOrder order({0, 1, 2, 3, 4, 5}, 2);
    std::unique_ptr<BatchSource> loader;
    if (on_device) {
      loader = std::make_unique<DeviceLoader>(copies.on(at::kCPU).train, augment, order, 2);
    } else {
      loader = std::make_unique<Loader>(dataset.train, augment, order, 2, 4);
    }
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const Indices units = epoch == 0 ? Indices{2, 0, 1} : Indices{1, 2, 0};
      order.publish(epoch, units);
      for (const std::int64_t unit : units) {
        Batch batch;
        loader->next(batch);
        for (std::int64_t k = 0; k < 2; ++k) {
          EXPECT_EQ(
              batch.labels[k].item<std::int64_t>(),
              as_bytes(dataset.train).labels[2 * unit + k].item<std::int64_t>());
        }
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::data
