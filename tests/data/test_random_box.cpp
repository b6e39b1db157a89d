#include "data/images/random_box.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace abtrain::data {
namespace {

Random stream(std::uint32_t a) {
  return Random(5, RandomPurpose::Test, 77, a);
}

struct Moments {
  double mean = 0, square = 0, least = 1e9, most = -1e9;
  void add(double value, double count) {
    mean += value / count;
    square += value * value / count;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  double variance() const {
    return square - mean * mean;
  }
};

// 20,000 boxes of .1 to .5 of a square: no box misses (1.16 times half the
// side at most), so area and log ratio stay uniform, places too.
TEST(RandomCrop, Statistics) {
  constexpr int boxes = 20'000;
  constexpr double side = 2000;
  Moments area, ratio, top, left;
  for (std::uint32_t i = 0; i < boxes; ++i) {
    Random random = stream(i);
    const Box box = draw_crop(random, 2000, 2000, 0.1, 0.5);
    const auto h = static_cast<double>(box.height);
    const auto w = static_cast<double>(box.width);
    area.add(h * w / (side * side), boxes);
    ratio.add(std::log(w / h), boxes);
    top.add(static_cast<double>(box.top) / (side - h), boxes);
    left.add(static_cast<double>(box.left) / (side - w), boxes);
  }
  // Standard errors: .0008, .0012, .002.
  EXPECT_NEAR(area.mean, 0.3, 0.003);
  EXPECT_NEAR(area.variance(), 0.4 * 0.4 / 12, 0.0005);
  EXPECT_NEAR(area.least, 0.1, 0.002);
  EXPECT_NEAR(area.most, 0.5, 0.002);
  const double width = 2 * std::log(4.0 / 3);
  EXPECT_NEAR(ratio.mean, 0, 0.005);
  EXPECT_NEAR(ratio.variance(), width * width / 12, 0.001);
  EXPECT_NEAR(ratio.most, std::log(4.0 / 3), 0.004);
  EXPECT_NEAR(ratio.least, -std::log(4.0 / 3), 0.004);
  for (const Moments& place : {top, left}) {
    EXPECT_NEAR(place.mean, 0.5, 0.008);
    EXPECT_NEAR(place.variance(), 1.0 / 12, 0.003);
    EXPECT_LT(place.least, 0.001);
    EXPECT_GT(place.most, 0.999);
  }
}

TEST(RandomCrop, IsAlwaysWithin) {
  for (const auto& [height, width] :
       {std::pair(1, 1), std::pair(3, 100), std::pair(32, 32), std::pair(500, 375)}) {
    for (std::uint32_t i = 0; i < 500; ++i) {
      Random random = stream(i);
      const Box box = draw_crop(random, height, width, 0.08, 1);
      ASSERT_GE(box.top, 0);
      ASSERT_GE(box.left, 0);
      ASSERT_GE(box.height, 1);
      ASSERT_GE(box.width, 1);
      ASSERT_LE(box.top + box.height, height);
      ASSERT_LE(box.left + box.width, width);
    }
  }
}

// All of a long image never fits: the largest box of a ratio within 3/4 .. 4/3
// in the center.
TEST(RandomCrop, FallsBackToTheCenter) {
  Random random = stream(1);
  const Box wide = draw_crop(random, 30, 1000, 1, 1);
  EXPECT_EQ(wide.height, 30);
  EXPECT_EQ(wide.width, 40);
  EXPECT_EQ(wide.top, 0);
  EXPECT_EQ(wide.left, 480);
  const Box tall = draw_crop(random, 1001, 30, 1, 1);
  EXPECT_EQ(tall.width, 30);
  EXPECT_EQ(tall.height, 40);
  EXPECT_EQ(tall.top, 480);
  EXPECT_EQ(tall.left, 0);
}

}  // namespace
}  // namespace abtrain::data
