#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"
#include "error_of.h"

namespace abtrain {
namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

TEST(Text, SplitJoinTrim) {
  EXPECT_EQ(split_text("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(split_text("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, EachOccurrenceIsReplacedOnce) {
  EXPECT_EQ(replaced("a|b||", "|", "\\|"), "a\\|b\\|\\|");
  EXPECT_EQ(replaced("abc", "d", "e"), "abc");
  EXPECT_EQ(in_quotes("a\\\"b"), "\"a\\\\\\\"b\"");
}

TEST(Text, GlobMatchesWholeNames) {
  for (const auto& [pattern, name] : Texts{
           {"fc*", "fc1"},
           {"*", ""},
           {"conv?.weight", "conv2.weight"},
           {"*a*b", "xaab"},
           {"conv[12].*", "conv2.weight"}}) {
    EXPECT_TRUE(glob_match(pattern, name)) << pattern;
  }
  for (const auto& [pattern, name] :
       Texts{{"conv[12].*", "conv3.weight"}, {"fc", "fc1"}, {"fc?", "fc"}, {"*a*b", "xaabc"}}) {
    EXPECT_FALSE(glob_match(pattern, name)) << pattern;
  }
}

TEST(Text, NearestIsWhatWasMeantOrNothing) {
  const std::vector<std::string> keys = {"rank", "ratio", "fraction"};
  EXPECT_EQ(nearest("rnak", keys), "rank");
  EXPECT_EQ(nearest("fractoin", keys), "fraction");
  EXPECT_EQ(nearest("fra", keys), "fraction");
  EXPECT_EQ(nearest("something", keys), "");
  for (const char* other : {"bank up", "tank2", "r", "an", "tar"}) {
    EXPECT_EQ(nearest(other, keys), "") << other;
  }
  EXPECT_EQ(nearest("rank", {}), "");
}

TEST(Text, WhatATerminalWouldActOnIsEscaped) {
  for (const auto& [text, escaped] : Texts{
           {"layer1.0.conv1.weight", "layer1.0.conv1.weight"},
           {"größe ± 誤差 😀", "größe ± 誤差 😀"},
           {"a\x1b[31mred\x07\x7f", "a\\x1b[31mred\\x07\\x7f"},
           {"a\nb\tc\rd", "a\\nb\\tc\\x0dd"},
           {std::string("a\0b", 3), "a\\x00b"},
           // CSI as one character, marks of direction, a separator of lines.
           {"\xc2\x9b"
            "31m",
            "\\xc2\\x9b31m"},
           {"a\u202e\u2066\u2028z", "a\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\xa8z"},
           // Latin-1, cut off, overlong, half of a surrogate pair, beyond Unicode.
           {"gr\xf6\xdf"
            "e",
            "gr\\xf6\\xdf"
            "e"},
           {"\xe8\xaa", "\\xe8\\xaa"},
           {"\xc0\x9b", "\\xc0\\x9b"},
           {"\xe0\x80\x9b", "\\xe0\\x80\\x9b"},
           {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
           {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}}) {
    EXPECT_EQ(printable(text), escaped);
  }
  EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc\\x0d");
}

TEST(Text, FormattedNumbersAreThoseOfStreams) {
  const std::string name = "fc1";
  EXPECT_EQ(formatted("{} of '{}'{}", 3, name, ';'), "3 of 'fc1';");
  EXPECT_EQ(formatted("{} {}", 0.1 + 0.2, 1234567.5), "0.3 1.23457e+06");
  EXPECT_EQ(formatted("{} {}", 1e6, -1234567.0), "1000000 -1234567");
  EXPECT_EQ(formatted("{} {}", 0.1F, -std::nan("")), "0.1 -nan");
  EXPECT_EQ(formatted("{:.2f}|{:>7.1f}", 2.0, 1e3), "2.00| 1000.0");
  EXPECT_EQ(formatted("{:.{}g}", 0.12345, 3), "0.123");
  EXPECT_EQ(formatted("{{{}}}", 1), "{1}");
}

TEST(Text, NumbersForPeople) {
  for (const auto& [number, text] : std::vector<std::pair<std::int64_t, std::string>>{
           {0, "0"}, {999, "999"}, {1234567, "1,234,567"}, {-1000, "-1,000"}}) {
    EXPECT_EQ(with_commas(number), text);
  }
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1536), "1.5 kB");
  EXPECT_EQ(human_bytes(17.3e6), "17.3 MB");
  for (const auto& [seconds, text] : std::vector<std::pair<double, std::string>>{
           {0.84, "0.8 s"}, {42, "42 s"}, {192, "3 min 12 s"}, {7500, "2 h 05 min"}}) {
    EXPECT_EQ(human_seconds(seconds), text);
  }
}

TEST(Duration, ConvertsEpochsAndSharesToWholeSteps) {
  EXPECT_EQ(Duration::steps(110).in_steps({234, 200}), 110);
  EXPECT_EQ(Duration::epochs(2).in_steps({234, 200}), 468);
  EXPECT_EQ(Duration::epochs(0.5).in_steps({235, 200}), 118);
  // The published VGG16 schedule as shares of its 15,000 steps.
  EXPECT_EQ(Duration::percent(28.8667).in_steps({48, 15000}), 4330);
  EXPECT_EQ(Duration::percent(5.06).in_steps({48, 15000}), 759);
  EXPECT_EQ(Duration::percent(5.06).in_steps({48, 4}), 0);
}

TEST(Check, ThrowsItsKindWithTheWholeMessage) {
  const int rank = 40;
  EXPECT_EQ(
      error_of([&] { ABT_CHECK(rank < 32, Config, "rank {} is above {}", rank, 32); }),
      Thrown(78, "rank 40 is above 32"));
  EXPECT_NO_THROW(ABT_CHECK(rank == 40, Config, "no"));
  EXPECT_THROW(ABT_ASSERT(rank == 41, "bug"), std::logic_error);
}

}  // namespace
}  // namespace abtrain
