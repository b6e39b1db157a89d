#include <gtest/gtest.h>

#include <cmath>

#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"

namespace abtrain {
namespace {

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
  EXPECT_TRUE(glob_match("fc*", "fc1"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("conv?.weight", "conv2.weight"));
  EXPECT_TRUE(glob_match("*a*b", "xaab"));
  EXPECT_TRUE(glob_match("conv[12].*", "conv2.weight"));
  EXPECT_FALSE(glob_match("conv[12].*", "conv3.weight"));
  EXPECT_FALSE(glob_match("fc", "fc1"));
  EXPECT_FALSE(glob_match("fc?", "fc"));
  EXPECT_FALSE(glob_match("*a*b", "xaabc"));
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
  EXPECT_EQ(printable("layer1.0.conv1.weight"), "layer1.0.conv1.weight");
  EXPECT_EQ(printable("größe ± 誤差 😀"), "größe ± 誤差 😀");
  EXPECT_EQ(printable("a\x1b[31mred\x07\x7f"), "a\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(
      printable("a\nb\tc\rd"),
      "a\\nb\\tc\\x0d"
      "d");
  EXPECT_EQ(printable("a\nb\tc\r", "\n\t"), "a\nb\tc\\x0d");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  // CSI as one character, marks of direction, a separator of lines.
  EXPECT_EQ(
      printable("\xc2\x9b"
                "31m"),
      "\\xc2\\x9b31m");
  EXPECT_EQ(printable("a\u202e\u2066\u2028z"), "a\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\xa8z");
  // Latin-1, cut off, overlong, half of a surrogate pair, beyond Unicode.
  EXPECT_EQ(
      printable("gr\xf6\xdf"
                "e"),
      "gr\\xf6\\xdf"
      "e");
  EXPECT_EQ(printable("\xe8\xaa"), "\\xe8\\xaa");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(printable("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
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
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1000), "-1,000");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1536), "1.5 kB");
  EXPECT_EQ(human_bytes(17.3e6), "17.3 MB");
  EXPECT_EQ(human_seconds(0.84), "0.8 s");
  EXPECT_EQ(human_seconds(42), "42 s");
  EXPECT_EQ(human_seconds(192), "3 min 12 s");
  EXPECT_EQ(human_seconds(7500), "2 h 05 min");
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
  try {
    ABT_CHECK(rank < 32, Config, "rank {} is above {}", rank, 32);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 78);
    EXPECT_STREQ(error.what(), "rank 40 is above 32");
  }
  EXPECT_NO_THROW(ABT_CHECK(rank == 40, Config, "no"));
  EXPECT_THROW(ABT_ASSERT(rank == 41, "bug"), std::logic_error);
}

}  // namespace
}  // namespace abtrain
