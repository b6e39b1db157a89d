#include "base/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace abtrain {
namespace {

Problem problem_at(int line, int column, const std::string& text) {
  return {{"run.yaml", line, column, text}, "train.steps", "expected more"};
}

TEST(Problems, PointAtTheirLineAndColumn) {
  EXPECT_EQ(
      to_text(problem_at(12, 10, "  steps: 0")),
      "run.yaml:12:10: error: train.steps: expected more\n"
      "  12 |   steps: 0\n"
      "     |          ^");
}

TEST(Problems, AreOneLineWhereTheSourceHasNone) {
  EXPECT_EQ(
      to_text({{"--set train.steps=0", 0, 0, ""}, "train.steps", "expected more"}),
      "--set train.steps=0: error: train.steps: expected more");
  EXPECT_EQ(to_text({{"run.yaml", 3, 1, "  "}, "", "is empty"}), "run.yaml:3:1: error: is empty");
}

TEST(Problems, CountCharactersAndKeepTabs) {
  // The e with its accent has two bytes.
  EXPECT_EQ(
      to_text(problem_at(1, 4, "\t\xC3\xA9: 0")),
      "run.yaml:1:4: error: train.steps: expected more\n"
      "  1 | \t\xC3\xA9: 0\n"
      "    | \t  ^");
}

TEST(Problems, OfALongLineShowThePartAround) {
  const std::string text =
      to_text(problem_at(1, 201, std::string(200, 'a') + "b" + std::string(200, 'c')));
  EXPECT_EQ(
      text.substr(text.find('\n')), "\n  1 | ..." + std::string(60, 'a') + "b" +
                                        std::string(39, 'c') + "...\n    |    " +
                                        std::string(60, ' ') + "^");
}

TEST(Problems, OfManyTwentyAreShownEachOnce) {
  std::vector<Problem> problems;
  for (int line = 1; line <= 23; ++line) {
    problems.push_back(problem_at(line, 1, ""));
    problems.push_back(problems.back());
  }
  const std::string text = to_text(problems);
  EXPECT_TRUE(text.ends_with("\nand 3 more")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 20);
  EXPECT_EQ(to_text(std::vector<Problem>{}), "");
}

TEST(Values, AreNamedInMessages) {
  Value value;
  EXPECT_EQ(describe(value), "nothing");
  value.kind = Value::Kind::List;
  EXPECT_EQ(describe(value), "a list");
  value.kind = Value::Kind::Section;
  EXPECT_EQ(describe(value), "a section");
  value.kind = Value::Kind::Scalar;
  value.text = "two\nlines";
  EXPECT_EQ(describe(value), "'two lines'");
  value.quoted = true;
  value.text = std::string(61, 'x');
  EXPECT_EQ(describe(value), "\"" + std::string(60, 'x') + "...\"");
  value.text = std::string(59, 'x') + "\u00e9tude";  // a character of two bytes is not split
  EXPECT_EQ(describe(value), "\"" + std::string(59, 'x') + "...\"");
}

}  // namespace
}  // namespace abtrain
