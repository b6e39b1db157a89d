#include "base/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "error_of.h"

namespace abtrain {
namespace {

using nlohmann::ordered_json;

std::string problem_of(const std::string& text) {
  JsonProblem problem;
  const ordered_json json = parse_json(text, problem);
  EXPECT_EQ(json.is_discarded(), !problem.what.empty()) << text.substr(0, 80);
  return problem.what;
}

std::string repeated(std::size_t count, const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

// Of a LocatedError: whoever prints it puts nothing before its place.
std::string complaint(const std::function<void()>& body) {
  EXPECT_THROW(body(), LocatedError);
  return expect_error(body, ErrorKind::DamagedData);
}

TEST(Json, IsWhatTheTextSaysInItsOrder) {
  const std::string text =
      R"({"b":[1,-2,3.5,true,null,"x\n"],"a":{"c":{},"d":[[]]},"":18446744073709551615})";
  JsonProblem problem;
  EXPECT_EQ(parse_json(text, problem).dump(), text);
  EXPECT_EQ(problem.what, "");
}

TEST(Json, DepthIsBounded) {
  for (const char* open : {"[", "{\"a\":"}) {
    const std::string what = "this is nested more than 64 levels deep";
    EXPECT_EQ(problem_of(repeated(100'000, open)), what);
    EXPECT_EQ(problem_of(repeated(65, open)), what);
    EXPECT_EQ(problem_of(repeated(64, open)), "this is damaged or cut off");
  }
  EXPECT_EQ(problem_of(repeated(64, "[") + repeated(64, "]")), "");
}

TEST(Json, SizeIsBounded) {
  EXPECT_EQ(
      problem_of("[" + repeated(10'000'001, "0,") + "0]"), "this has more than 10,000,000 values");
  EXPECT_EQ(problem_of(std::string(100'000'001, ' ')), "this has more than 100,000,000 bytes");
}

TEST(Json, DamageIsNamed) {
  EXPECT_EQ(problem_of("[1e999]"), "a number here is outside the range of a double");
  EXPECT_EQ(problem_of("[-1e999]"), "a number here is outside the range of a double");
  EXPECT_EQ(
      problem_of(R"({"a":{"b\u001b":1,"c":2,"b\u001b":3}})"),
      R"(this has the key "b\u001b" twice)");
  for (const char* text :
       {"", " ", "{", "[1,]", "nul", "{\"a\":1}}", "\"\xff\"", "[NaN]", "[\"\t\"]"}) {
    EXPECT_EQ(problem_of(text), "this is damaged or cut off") << text;
  }
}

// An ordered object that looks through its keys for each new one takes minutes.
TEST(Json, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 400'000; ++i) {
    text += formatted("{}\"layer.{}\":{}", i == 0 ? "" : ",", i, i);
  }
  JsonProblem problem;
  const ordered_json json = parse_json(text + "}", problem);
  ASSERT_EQ(json.size(), 400'000U) << problem.what;
  EXPECT_EQ(std::prev(json.end()).key(), "layer.399999");
}

TEST(Json, NumbersAreOfTheirTypeAndRange) {
  std::int64_t whole = 7;
  for (const char* text :
       {"9223372036854775808", "18446744073709551616", "1.0", "1e3", "true", "null", "\"1\"",
        "[1]"}) {
    EXPECT_FALSE(read_json(ordered_json::parse(text), whole)) << text;
  }
  EXPECT_EQ(whole, 7);
  EXPECT_TRUE(read_json(ordered_json::parse("9223372036854775807"), whole));
  EXPECT_EQ(whole, std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(read_json(ordered_json::parse("-9223372036854775808"), whole));
  EXPECT_EQ(whole, std::numeric_limits<std::int64_t>::min());
  double number = 0;
  EXPECT_TRUE(read_json(ordered_json::parse("18446744073709551615"), number));
  EXPECT_FALSE(read_json(ordered_json::parse("null"), number));
  std::vector<std::int64_t> list = {1};
  EXPECT_FALSE(read_json(ordered_json::parse("[1,2.5]"), list));
  EXPECT_FALSE(read_json(ordered_json::parse("{\"a\":2}"), list));
  EXPECT_EQ(list, std::vector<std::int64_t>{1});
  EXPECT_TRUE(read_json(ordered_json::parse("[3,4]"), list));
  EXPECT_EQ(list, (std::vector<std::int64_t>{3, 4}));
}

TEST(Json, ComplaintsNameFileLineAndKey) {
  const JsonObject object("f", 4, R"({"a":{"n":-5,"t":[]},"t":"x"})");
  EXPECT_EQ(object.integer("/a/n", -5, 3), -5);
  EXPECT_EQ(
      complaint([&] { object.integer("/a/n", 0, 9); }),
      "f:4: error: a.n: expected a whole number from 0 to 9, got -5");
  EXPECT_EQ(
      complaint([&] { object.number("/b"); }), "f:4: error: b: expected a number, got nothing");
  EXPECT_EQ(
      complaint([&] { object.text("/a"); }),
      R"(f:4: error: a: expected a string, got {"n":-5,"t":[]})");
  EXPECT_EQ(
      complaint([] { JsonObject("f", 4, "{\n\n[}"); }),
      "f:6: error: expected a JSON object, but this is damaged or cut off");
  EXPECT_EQ(complaint([] { JsonObject("f", 1, "[]"); }), "f:1: error: expected a JSON object");
}

TEST(Json, IsShownShortAndWithoutControlCharacters) {
  EXPECT_EQ(shown("a\x1b\x7f\u009b"), R"("a\u001b\u007f\u009b")");
  EXPECT_EQ(shown(std::string(500, 'x')).size(), 80U);
}

}  // namespace
}  // namespace abtrain
