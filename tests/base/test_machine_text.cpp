#include "base/machine_text.h"

#include <gtest/gtest.h>

namespace abtrain {
namespace {

TEST(MachineText, CsvQuotesAndEscapes) {
  EXPECT_EQ(csv_line({"a", "", "b c"}), "a,,b c");
  EXPECT_EQ(csv_line({"a,b", "say \"x\""}), R"("a,b","say ""x""")");
  EXPECT_EQ(
      csv_line({"\033[31mred", std::string("nul\0", 4), "one\r\ntwo"}),
      R"(\x1b[31mred,nul\x00,one\x0d\ntwo)");
  EXPECT_EQ(csv_line({"\u202egnp.\xff"}), R"(\xe2\x80\xaegnp.\xff)");
  EXPECT_EQ(csv_line({"größe"}), "größe");
}

TEST(MachineText, NoCellIsAFormula) {
  for (const char* cell : {"=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)"}) {
    EXPECT_EQ(csv_line({cell}), std::string("'") + cell);
  }
  EXPECT_EQ(csv_line({"=A1,B1"}), "\"'=A1,B1\"");
  // What a spreadsheet would cut off in front of a formula is no longer there.
  EXPECT_EQ(csv_line({"\t=1", "\r=1"}), R"(\t=1,\x0d=1)");
  for (const char* number : {"-1.5", "+3", "-1e-05", "-inf", "0"}) {
    EXPECT_EQ(csv_line({number}), number);
  }
}

TEST(MachineText, JsonIsAsciiAndReadsBack) {
  const std::string name = "\u202egnp.ü\x7f\u0085\033";
  const std::string text = json_text({{"name", name}, {"bad", "a\xff"}});
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << text;
  }
  const auto read = nlohmann::json::parse(text);
  EXPECT_EQ(read["name"], name);
  EXPECT_EQ(read["bad"], "a\ufffd");
  EXPECT_EQ(json_text({{"a", 1}}, -1), "{\"a\":1}\n");
}

}  // namespace
}  // namespace abtrain
