#include "compress/bucket.h"

#include <gtest/gtest.h>

namespace abtrain::compress {
namespace {

// Weights of three layers, then their biases, as a block of parameters has
// them.
std::vector<Slot> layers(std::int64_t numbers) {
  return {{"w1", 0, {numbers}, 0},           {"w2", numbers, {numbers}, 2},
          {"w3", 2 * numbers, {numbers}, 4}, {"b1", 3 * numbers, {10}, 1},
          {"b2", 3 * numbers + 10, {10}, 3}, {"b3", 3 * numbers + 20, {10}, 5}};
}

std::string names(const Bucket& bucket) {
  std::string text;
  for (const Slot& slot : bucket.slots) {
    text += slot.name + " ";
  }
  return text;
}

TEST(Bucket, TheLastLayersComeFirst) {
  const auto buckets = make_buckets(layers(300000), 1.5);
  ASSERT_EQ(buckets.size(), 2U);
  // The first is full at 1 MiB, the others at 1.5 MiB.
  EXPECT_EQ(names(buckets[0]), "w3 b3 ");
  EXPECT_EQ(names(buckets[1]), "w1 b1 w2 b2 ");
  EXPECT_EQ(buckets[1].numel(), 600020);
}

TEST(Bucket, NeighborsAreOneRange) {
  const auto buckets = make_buckets(layers(300000), 1.5);
  const auto ranges = ranges_of(buckets[1].slots);
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].begin, 0);
  EXPECT_EQ(ranges[0].size, 600000);
  EXPECT_EQ(ranges[1].begin, 900000);
  EXPECT_EQ(ranges[1].size, 20);
}

TEST(Bucket, ZeroMeansOne) {
  const auto buckets = make_buckets(layers(300000), 0);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(ranges_of(buckets[0].slots).size(), 1U);
  EXPECT_EQ(buckets[0].numel(), 900030);
}

TEST(Bucket, EmptySlotsAreLeftOut) {
  EXPECT_TRUE(make_buckets({{"none", 0, {0, 5}, 0}}, 25).empty());
  EXPECT_TRUE(make_buckets({}, 25).empty());
  const auto buckets = make_buckets({{"none", 0, {0}, 0}, {"one", 0, {}, 1}}, 25);
  ASSERT_EQ(buckets.size(), 1U);
  EXPECT_EQ(names(buckets[0]), "one ");
  EXPECT_EQ(buckets[0].numel(), 1);
}

}  // namespace
}  // namespace abtrain::compress
