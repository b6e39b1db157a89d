// Configurations that nobody writes: refused at once, with little to say. Most
// of these took minutes, or gigabytes.
#include "wrong_config.h"

namespace abtrain::config {
namespace {

using testing::expect_problems;
using testing::problems_of;

std::string repeated(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

TEST(ConfigLimits, Depth) {
  expect_problems(
      {"",
       "a: " + repeated(400, "[") + repeated(400, "]"),
       {},
       {"c.yaml:1:35: error: not valid YAML: it is nested more than 32 deep"}});
  EXPECT_EQ(problems_of({"", "a: " + repeated(100'000, "["), {}, {}}).size(), 1U);
  expect_problems({"", repeated(1000, "- "), {}, {"...nested more than 32 deep..."}});
}

TEST(ConfigLimits, Values) {
  expect_problems(
      {"",
       "a: [" + repeated(200'000, "b, ") + "]",
       {},
       {"c.yaml:1:299996: error: not valid YAML: it has more than 100,000 values"}});
}

TEST(ConfigLimits, Bytes) {
  expect_problems(
      {"",
       std::string((1 << 20) + 1, ' '),
       {},
       {"c.yaml: error: expected at most 1,048,576 bytes, got 1,048,577"}});
}

TEST(ConfigLimits, Problems) {
  std::string keys;
  for (int i = 0; i < 20'000; ++i) {
    keys += formatted("{}\"k{}\": 1", i == 0 ? "{" : ", ", i);
  }
  std::string whole;
  EXPECT_EQ(problems_of({"", keys + "}", {}, {}}, &whole).size(), 20U);
  EXPECT_TRUE(whole.ends_with("and 19980 more")) << whole.substr(0, 500);
}

}  // namespace
}  // namespace abtrain::config
