// Configurations that nobody writes: refused at once, with little to say. Most
// of these took minutes, or gigabytes.
#include "wrong_config.h"

namespace abtrain::config {
namespace {

using testing::problems_of;
using testing::Texts;

std::string repeated(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

TEST(ConfigLimits, Depth) {
  const Texts flow = {"c.yaml:1:35: error: not valid YAML: it is nested more than 32 deep"};
  EXPECT_EQ(problems_of({"", "a: " + repeated(400, "[") + repeated(400, "]"), {}, {}}), flow);
  EXPECT_EQ(problems_of({"", "a: " + repeated(100'000, "["), {}, {}}).size(), 1U);
  const Texts block = problems_of({"", repeated(1000, "- "), {}, {}});
  ASSERT_EQ(block.size(), 1U);
  EXPECT_NE(block[0].find("nested more than 32 deep"), std::string::npos);
}

TEST(ConfigLimits, Values) {
  const Texts one = {
      "c.yaml:1:299996: error: not valid YAML: it has more than 100,000 "
      "values"};
  EXPECT_EQ(problems_of({"", "a: [" + repeated(200'000, "b, ") + "]", {}, {}}), one);
}

TEST(ConfigLimits, Bytes) {
  const Texts one = {"c.yaml: error: expected at most 1,048,576 bytes, got 1,048,577"};
  EXPECT_EQ(problems_of({"", std::string((1 << 20) + 1, ' '), {}, {}}), one);
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
