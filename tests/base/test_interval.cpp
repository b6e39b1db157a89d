#include "base/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace abtrain {
namespace {

TEST(Interval, ContainsItsEndsUnlessTheyAreOpen) {
  EXPECT_TRUE(between(0, 1).contains(0));
  EXPECT_TRUE(between(0, 1).contains(1));
  EXPECT_FALSE(between(0, 1).contains(std::nextafter(1, 2)));
  EXPECT_TRUE(from_to_below(0, 1).contains(0));
  EXPECT_FALSE(from_to_below(0, 1).contains(1));
  EXPECT_FALSE(above_to(0, 1).contains(0));
  EXPECT_TRUE(above_to(0, 1).contains(1));
  EXPECT_TRUE(Interval{}.contains(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(Interval{}.contains(1e308));
}

TEST(Interval, ContainsNoNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Interval{}.contains(nan));
  EXPECT_FALSE(above_to(0, 1).contains(nan));
}

TEST(Interval, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(between(0, 1).text(), " from 0 to 1");
  EXPECT_EQ(from_to_below(0, 0.5).text(), " from 0 to below 0.5");
  EXPECT_EQ(above_to(0, kLargest).text(), " above 0 and at most 1e38");
  Interval open = above_to(0, 1);
  open.high_open = true;
  EXPECT_EQ(open.text(), " above 0 and below 1");
  EXPECT_EQ(Interval{}.text(), "");
}

}  // namespace
}  // namespace abtrain
