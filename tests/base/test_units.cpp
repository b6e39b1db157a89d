#include "base/units.h"

#include <gtest/gtest.h>

namespace abtrain {
namespace {

TEST(Units, ReadsRates) {
  EXPECT_DOUBLE_EQ(parse_rate("1Gbit").value_or(-1), 1e9);
  EXPECT_DOUBLE_EQ(parse_rate("100 Mbit/s").value_or(-1), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("100mbit").value_or(-1), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("25Gbps").value_or(-1), 25e9);
  EXPECT_DOUBLE_EQ(parse_rate("2.5GB/s").value_or(-1), 20e9);
  EXPECT_DOUBLE_EQ(parse_rate("12.5MB").value_or(-1), 1e8);
  EXPECT_DOUBLE_EQ(parse_rate("9600bit").value_or(-1), 9600);
  EXPECT_DOUBLE_EQ(parse_rate("9600B").value_or(-1), 76800);
  for (const char* wrong :
       {"", "fast", "1", "1G", "Gbit", "-1Gbit", "0Gbit", "1Gbit/h", "1 Xbit", "nanGbit", "infGbit",
        "1Gbit 2"}) {
    EXPECT_FALSE(parse_rate(wrong).has_value()) << wrong;
  }
}

TEST(Units, ReadsTimes) {
  EXPECT_DOUBLE_EQ(parse_seconds("50us").value_or(-1), 50e-6);
  EXPECT_DOUBLE_EQ(parse_seconds(" 1.5 ms ").value_or(-1), 1.5e-3);
  EXPECT_DOUBLE_EQ(parse_seconds("0s").value_or(-1), 0);
  EXPECT_DOUBLE_EQ(parse_seconds("3 min").value_or(-1), 180);
  for (const char* wrong : {"", "1", "-1s", "1 sec", "s", "1e999s", "nan s"}) {
    EXPECT_FALSE(parse_seconds(wrong).has_value()) << wrong;
  }
}

TEST(Units, WritesThem) {
  EXPECT_EQ(rate_text(1e9), "1 Gbit/s");
  EXPECT_EQ(rate_text(1e8), "100 Mbit/s");
  EXPECT_EQ(rate_text(4e11), "400 Gbit/s");
  EXPECT_EQ(short_time_text(50e-6), "50 us");
  EXPECT_EQ(short_time_text(0), "0 s");
  EXPECT_EQ(short_time_text(2.5e-3), "2.5 ms");
}

}  // namespace
}  // namespace abtrain
