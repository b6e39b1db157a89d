#include <gtest/gtest.h>

#include "base/env.h"
#include "base/options_apply.h"
#include "with_variables.h"

namespace abtrain {
namespace {

enum class Shape { Round, Square };

struct Inner {
  std::int64_t size = 3;
};

struct Sample {
  bool flag = false;
  std::int64_t count = 1;
  std::uint64_t seed = 2;
  double rate = 0.5;
  std::string kind = "plain";
  Shape shape = Shape::Square;
  std::string title = "t";
  std::string folder = "f";
  std::optional<std::int64_t> groups;
  std::optional<bool> feedback;
  Duration every = Duration::epochs(1);
  std::optional<Duration> ramp;
  std::vector<std::int64_t> sizes = {1, 2};
  std::vector<std::int64_t> widths;
  std::vector<double> shares = {0.5};
  std::vector<std::string> names;
  Inner inner;
};

Fields fields_of(Sample& s) {
  Fields inner, f;
  inner.integer("size", s.inner.size, Interval{}, "a size");
  f.flag("flag", s.flag, "a flag");
  f.integer("count", s.count, between(1, 9), "a count");
  f.integer("seed", s.seed, "a seed");
  f.number("rate", s.rate, from_to_below(0, 1), "a rate");
  f.choice("kind", s.kind, {"plain", "fancy"}, "a kind");
  f.choice<Shape>(
      "shape", s.shape, {{"round", Shape::Round}, {"square", Shape::Square}}, "a shape");
  f.text("title", s.title, "a title");
  f.folder_name("folder", s.folder, "a folder");
  f.auto_or_integer("groups", s.groups, between(1, 64), "groups");
  f.auto_or_flag("feedback", s.feedback, "error feedback");
  f.duration("every", s.every, above_to(0, 1e8), "an interval");
  f.auto_or_duration("ramp", s.ramp, between(0, 1e38), "a ramp");
  f.integers("sizes", s.sizes, between(1, 1e6), "sizes");
  f.auto_or_integers("widths", s.widths, between(1, 9), "widths");
  f.numbers("shares", s.shares, above_to(0, 1), "shares");
  f.texts("names", s.names, "names");
  f.section("inner", inner, "inner part");
  return f;
}

Value scalar(const std::string& text) {
  Value value;
  value.kind = Value::Kind::Scalar;
  value.text = text;
  return value;
}

Value list(const std::vector<std::string>& texts) {
  Value value;
  value.kind = Value::Kind::List;
  for (const std::string& text : texts) {
    value.items.push_back(scalar(text));
  }
  return value;
}

Value section(const std::vector<std::pair<std::string, Value>>& entries) {
  Value value;
  value.kind = Value::Kind::Section;
  for (const auto& [key, inner] : entries) {
    value.entries.push_back({key, {}, inner});
  }
  return value;
}

// What is wrong with one entry: "key: message", "" if nothing.
std::string fault(const std::string& key, const Value& value) {
  Sample sample;
  const std::string before = to_yaml(fields_of(sample));
  ReadResult reading;
  apply(fields_of(sample), section({{key, value}}), reading);
  std::string out;
  for (const Problem& problem : reading.problems) {
    out += problem.key + ": " + problem.message;
  }
  if (!out.empty()) {
    EXPECT_EQ(to_yaml(fields_of(sample)), before) << "a wrong value was set";
  }
  return out;
}

TEST(Options, AListOrAuto) {
  Sample s;
  EXPECT_NE(to_yaml(fields_of(s)).find("widths: auto"), std::string::npos);
  ReadResult reading;
  apply(fields_of(s), section({{"widths", list({"3", "9"})}}), reading);
  EXPECT_EQ(s.widths, (std::vector<std::int64_t>{3, 9}));
  EXPECT_NE(to_yaml(fields_of(s)).find("widths: [3, 9]"), std::string::npos);
  apply(fields_of(s), section({{"widths", scalar("auto")}}), reading);
  EXPECT_TRUE(s.widths.empty());
  EXPECT_TRUE(reading.problems.empty());
  EXPECT_EQ(
      fault("widths", scalar("4")),
      "widths: expected auto or a list, each item an integer from 1 to 9, got '4' (write [4])");
  EXPECT_NE(fault("widths", list({"0"})), "");
}

TEST(Options, SetsEveryType) {
  Sample s;
  ReadResult reading;
  apply(
      fields_of(s),
      section(
          {{"flag", scalar("true")},
           {"count", scalar("9")},
           {"seed", scalar("18446744073709551615")},
           {"rate", scalar("1e-3")},
           {"kind", scalar("fancy")},
           {"shape", scalar("round")},
           {"title", scalar("7 x")},
           {"folder", scalar("run_1")},
           {"groups", scalar("4")},
           {"feedback", scalar("false")},
           {"every", scalar("110")},
           {"ramp", scalar("2 epochs")},
           {"sizes", list({"64", "32"})},
           {"shares", list({"0.25", "1"})},
           {"names", list({"fc*"})},
           {"inner", section({{"size", scalar("-5")}})}}),
      reading);
  EXPECT_EQ(to_text(reading.problems), "");
  EXPECT_EQ(s.groups, 4);
  EXPECT_EQ(s.feedback, false);
  EXPECT_EQ(s.shape, Shape::Round);
  EXPECT_EQ(s.names, std::vector<std::string>{"fc*"});
  EXPECT_EQ(
      to_yaml(fields_of(s)),
      "flag: true\ncount: 9\nseed: 18446744073709551615\nrate: 0.001\nkind: fancy\n"
      "shape: round\ntitle: \"7 x\"\nfolder: run_1\ngroups: 4\n"
      "feedback: \"false\"\nevery: 110 steps\nramp: 2 epochs\nsizes: [64, 32]\n"
      "widths: auto\n"
      "shares: [0.25, 1]\nnames: [\"fc*\"]\ninner:\n"
      "  size: -5\n");
  EXPECT_EQ(reading.settings.size(), 16u);
  EXPECT_EQ(reading.settings.count("inner.size"), 1u);
}

TEST(Options, PrintsEveryKey) {
  Sample s;
  EXPECT_EQ(
      to_yaml(fields_of(s)),
      "flag: false\ncount: 1\nseed: 2\nrate: 0.5\nkind: plain\n"
      "shape: square\ntitle: t\nfolder: f\ngroups: auto\n"
      "feedback: auto\nevery: 1 epoch\nramp: auto\nsizes: [1, 2]\nwidths: auto\nshares: "
      "[0.5]\nnames: []\ninner:\n"
      "  size: 3\n");
}

TEST(Options, AWordStandsForNoText) {
  std::optional<std::string> root = "/data";
  Fields f;
  f.text_or("root", "auto", root, "a folder");
  const auto read = [&](const std::string& text) {
    ReadResult reading;
    apply(f, section({{"root", scalar(text)}}), reading);
    return reading.problems.size();
  };
  EXPECT_EQ(to_yaml(f), "root: /data\n");
  EXPECT_EQ(read("auto"), 0u);
  EXPECT_EQ(root, std::nullopt);
  EXPECT_EQ(to_yaml(f), "root: auto\n");
  EXPECT_EQ(read("here"), 0u);
  EXPECT_EQ(read(""), 1u);
  EXPECT_EQ(root, "here");
}

TEST(Options, SaysWhatWasWantedAndWhatCame) {
  struct Row {
    std::string key;
    Value value;
    std::string message;
  };
  const std::vector<Row> rows = {
      {"count", scalar("10"), "expected an integer from 1 to 9, got '10'"},
      {"flag", scalar("yes"), "expected true or false, got 'yes'"},
      {"rate", scalar("1"), "expected a number from 0 to below 1, got '1'"},
      {"rate", Value{}, "expected a number from 0 to below 1, got nothing"},
      {"kind", scalar("fanzy"),
       "expected one of plain, fancy, got 'fanzy' (did you mean 'fancy'?)"},
      {"shape", list({}), "expected one of round, square, got a list"},
      {"groups", scalar("0"), "expected auto or an integer from 1 to 64, got '0'"},
      {"feedback", scalar("yes"), "expected one of auto, true, false, got 'yes'"},
      {"every", scalar("0"),
       "expected a duration above 0 and at most 100000000, as in 110, 2 epochs or 5 %, got '0'"},
      {"ramp", scalar("-1"),
       "expected auto or a duration from 0 to 1e38, as in 110, 2 epochs or 5 %, got '-1'"},
      {"sizes", scalar("64"),
       "expected a list, each item an integer from 1 to 1000000, got '64' (write [64])"},
      {"sizes", list({"64", "x"}), "expected an integer from 1 to 1000000, got 'x'"},
      {"shares", list({}),
       "expected a list, each item a number above 0 and at most 1, got a list (it is empty)"},
      {"inner", scalar("3"), "expected a section, as in 'inner: {size: 3}', got '3'"}};
  for (const Row& row : rows) {
    EXPECT_EQ(fault(row.key, row.value), row.key + ": " + row.message);
  }
}

TEST(Options, QuotedNumbersAreText) {
  Value three = scalar("3");
  three.quoted = true;
  EXPECT_EQ(
      fault("count", three),
      "count: expected an integer from 1 to 9, got \"3\" "
      "(leave the quotes off)");
  EXPECT_EQ(fault("title", three), "");
}

TEST(Options, FolderNames) {
  for (const char* right : {"a", "run 1", "x.y", "ü", "2024-01"}) {
    EXPECT_EQ(fault("folder", scalar(right)), "") << right;
  }
  for (const std::string& wrong :
       {std::string("a/b"), std::string("a\\b"), std::string("."), std::string(".."),
        std::string("-a"), std::string(" a"), std::string("a "), std::string(""),
        std::string("a\nb"), std::string(201, 'a')}) {
    EXPECT_NE(fault("folder", scalar(wrong)), "") << wrong;
  }
}

TEST(Options, RepeatedKeysAreRefusedAndTheFirstStays) {
  Sample s;
  ReadResult reading;
  apply(fields_of(s), section({{"count", scalar("2")}, {"count", scalar("3")}}), reading);
  ASSERT_EQ(reading.problems.size(), 1u);
  EXPECT_EQ(reading.problems[0].key, "count");
  EXPECT_EQ(s.count, 2);
}

TEST(Paths, AreExpandedAsAShellDoes) {
  const testing::WithVariables variables{
      {"HOME", "/home/me"}, {"SCRATCH", "/scratch"}, {"A_1", "a"}, {"NOT_THERE", {}}};
  const auto expanded = [](const std::string& path) {
    std::string out, why;
    return expand_path(path, out, why) ? out : "refused: " + why;
  };
  EXPECT_EQ(expanded("~/runs"), "/home/me/runs");
  EXPECT_EQ(expanded("~"), "/home/me");
  EXPECT_EQ(expanded("$SCRATCH/runs"), "/scratch/runs");
  EXPECT_EQ(expanded("${SCRATCH}runs/$A_1.b/${A_1}"), "/scratchruns/a.b/a");
  EXPECT_EQ(expanded("$NOT_THERE/x"), "refused: the environment variable NOT_THERE is not set");
  EXPECT_EQ(expanded("${NOT_THERE}"), "refused: the environment variable NOT_THERE is not set");
  for (const char* plain :
       {"", "a~/b", "~you/b", "cost$", "$/a", "${/a", "${}", "$1.50", "a/${A_1"}) {
    EXPECT_EQ(expanded(plain), plain);
  }
}

TEST(Paths, OfAKey) {
  const testing::WithVariables variables{{"SCRATCH", "/scratch"}, {"NOT_THERE", {}}};
  std::string output = "runs";
  std::optional<std::string> root;
  Fields f;
  f.path("output", output, "a folder");
  f.path_or("root", "auto", root, "a folder");
  const auto read = [&](std::size_t field, const std::string& text) {
    std::string complaint;
    Value value;
    value.kind = Value::Kind::Scalar;
    value.text = text;
    f.list()[field].read(value, [&](const Value&, const std::string& what) { complaint = what; });
    return complaint;
  };
  EXPECT_EQ(read(0, "$SCRATCH/runs"), "");
  EXPECT_EQ(output, "/scratch/runs");
  EXPECT_EQ(read(1, "${SCRATCH}"), "");
  EXPECT_EQ(root, "/scratch");
  EXPECT_EQ(read(1, "auto"), "");
  EXPECT_EQ(root, std::nullopt);
  EXPECT_NE(read(0, "$NOT_THERE/runs").find("NOT_THERE is not set"), std::string::npos);
  EXPECT_EQ(output, "/scratch/runs");
}

}  // namespace
}  // namespace abtrain
