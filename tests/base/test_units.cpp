#include "base/units.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace abtrain {
namespace {

TEST(Units, ReadsRates) {
  for (const auto& [text, rate] : std::vector<std::pair<std::string, double>>{
           {"1Gbit", 1e9},
           {"100 Mbit/s", 1e8},
           {"100mbit", 1e8},
           {"25Gbps", 25e9},
           {"2.5GB/s", 20e9},
           {"12.5MB", 1e8},
           {"9600bit", 9600},
           {"9600B", 76800}}) {
    EXPECT_DOUBLE_EQ(parse_rate(text).value_or(-1), rate) << text;
  }
  for (const char* wrong :
       {"", "fast", "1", "1G", "Gbit", "-1Gbit", "0Gbit", "1Gbit/h", "1 Xbit", "nanGbit", "infGbit",
        "1Gbit 2"}) {
    EXPECT_FALSE(parse_rate(wrong).has_value()) << wrong;
  }
}

TEST(Units, ReadsTimes) {
  for (const auto& [text, seconds] : std::vector<std::pair<std::string, double>>{
           {"50us", 50e-6}, {" 1.5 ms ", 1.5e-3}, {"0s", 0}, {"3 min", 180}}) {
    EXPECT_DOUBLE_EQ(parse_seconds(text).value_or(-1), seconds) << text;
  }
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
