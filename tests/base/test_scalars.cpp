#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/scalars.h"

namespace abtrain {
namespace {

TEST(Scalars, Integers) {
  const auto read = [](const std::string& text) {
    std::int64_t value = 0;
    std::string why;
    return parse_integer(text, value, why) ? std::to_string(value) : "no";
  };
  EXPECT_EQ(read("0"), "0");
  EXPECT_EQ(read("-12"), "-12");
  EXPECT_EQ(read("+12"), "12");
  EXPECT_EQ(read("9223372036854775807"), "9223372036854775807");
  for (const char* wrong :
       {"", "-", "+-1", "010", "-01", "0x10", "1e3", "1.0", "1_000", " 1", "9223372036854775808"}) {
    EXPECT_EQ(read(wrong), "no") << wrong;
  }
}

TEST(Scalars, UnsignedIntegersReachTheirLimit) {
  std::uint64_t value = 0;
  std::string why;
  EXPECT_TRUE(parse_integer("18446744073709551615", value, why));
  EXPECT_EQ(value, std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_integer("18446744073709551616", value, why));
  EXPECT_FALSE(parse_integer("-1", value, why));
}

TEST(Scalars, Numbers) {
  const auto read = [](const std::string& text) {
    double value = std::nan("");
    std::string why;
    const bool right = parse_number(text, value, why);
    EXPECT_EQ(right, !std::isnan(value)) << text;
    return value;
  };
  EXPECT_EQ(read("1e-3"), 0.001);
  EXPECT_EQ(read("+.5"), 0.5);
  EXPECT_EQ(read("-0.25"), -0.25);
  EXPECT_EQ(read("1E2"), 100);
  for (const char* wrong :
       {"", "nan", ".nan", "inf", "-.inf", "infinity", "1e400", "0x1p3", "1,5", "010.5", "--1",
        "1e", "1 2"}) {
    EXPECT_TRUE(std::isnan(read(wrong))) << wrong;
  }
}

TEST(Scalars, Bytes) {
  const auto read = [](const std::string& text) {
    std::uint64_t bytes = 0;
    std::string why;
    return parse_bytes(text, bytes, why) ? bytes : 0;
  };
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, std::uint64_t>>{
           {"1", 1},
           {"20MB", 20'000'000},
           {"20 mb", 20'000'000},
           {"1.5 GiB", 1'610'612'736},
           {"3KiB", 3072},
           {"2kB", 2000},
           {"7B", 7}}) {
    EXPECT_EQ(read(text), bytes) << text;
  }
  for (const char* wrong : {"", "MB", "0", "0.5", "-1MB", "1TB", "1 M", "1e30", "nan", "1,5MB"}) {
    EXPECT_EQ(read(wrong), 0u) << wrong;
  }
}

TEST(Scalars, Durations) {
  const auto read = [](const std::string& text) {
    Duration value;
    std::string why;
    return parse_duration(text, value, why) ? print_duration(value) : why;
  };
  for (const auto& [text, duration] : std::vector<std::pair<std::string, std::string>>{
           {"110", "110 steps"},
           {"110 steps", "110 steps"},
           {"1 step", "1 step"},
           {"2 epochs", "2 epochs"},
           {"1 epoch", "1 epoch"},
           {"0.5 epochs", "0.5 epochs"},
           {"28.8667 %", "28.8667 %"},
           {"5%", "5 %"},
           {"x %", ""},
           {"5 %%", "the unit must be steps, epochs or %"},
           {"1.5", "steps are whole numbers"},
           {"2 hours", "the unit must be steps, epochs or %"},
           {"2epochs", "put a space before the unit: 2 epochs"},
           {"110steps", "put a space before the unit: 110 steps"},
           {"0.5epoch", "put a space before the unit: 0.5 epoch"},
           {"steps", ""},
           {"010", "write it without the leading zero"},
           {"inf epochs", "not a finite number"}}) {
    EXPECT_EQ(read(text), duration) << text;
  }
}

TEST(Scalars, NumbersReadBackToTheSameBits) {
  const double values[] = {0, 1, -1, 0.1, 1e-5, 1e-8, 1.0 / 3, 1e9, 1e22, 5e-324, 1.7e308, -2.5};
  for (const double value : values) {
    double read = std::nan("");
    std::string why;
    ASSERT_TRUE(parse_number(print_number(value), read, why)) << value;
    EXPECT_EQ(read, value);
  }
  EXPECT_EQ(print_number(1000000), "1000000");
  EXPECT_EQ(print_number(1e-5), "1.0e-05");
}

TEST(Scalars, TextIsQuotedWhereYamlWouldTakeItForSomethingElse) {
  EXPECT_EQ(print_text("only-b"), "only-b");
  EXPECT_EQ(print_text("/data/x.y"), "/data/x.y");
  for (const char* text : {"", "123", "1e3", "yes", "Null", "a b", "a: b", "*"}) {
    EXPECT_EQ(print_text(text), std::string("\"") + text + "\"");
  }
  EXPECT_EQ(print_text("a\"\\\n"), "\"a\\\"\\\\\\x0A\"");
}

}  // namespace
}  // namespace abtrain
