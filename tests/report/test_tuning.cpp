#include "report/tuning.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "error_of.h"
#include "report/formats.h"
#include "report/front.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;

TEST(Tuning, WhatEachRivalWasGivenStandsBelowTheTable) {
  const TempFolder folder;
  for (const int seed : {1, 2}) {
    add_run(folder, {.name = formatted("a_{}", seed), .seed = seed});
  }
  auto comparison = compare({folder.path()}, {});
  EXPECT_FALSE(read_tuning(comparison.settings));
  folder.add(
      "tuning.json",
      R"({"settings": 3, "rivals": [{"name": "a", "why": "all | averaged",
          "tried": 3, "pilots": 5, "pilot_seconds": 41.2,
          "chosen": "optimizer.lr: 0.04"}],
          "left_out": [{"name": "b", "why": "too large", "kind": "diverged"},
                       {"name": "c", "why": "not in --only"},
                       {"name": "d", "why": "not in --only"}]})");
  comparison.tuning = read_tuning(comparison.settings);
  ASSERT_TRUE(comparison.tuning);
  EXPECT_FALSE(comparison.tuning->question);  // of an earlier version
  EXPECT_TRUE(is_partial(*comparison.tuning));
  EXPECT_FALSE(is_partial({}));
  const auto columns = front_columns({});
  const std::string table = as_table(comparison, columns, false);
  EXPECT_NE(
      table.find("\nWhat each rival was given\n"
                 "rival  what it is      settings tried  pilot runs  seconds  "
                 "chosen\n"
                 "a      all | averaged  3               5           41.2     "
                 "optimizer.lr: 0.04\n"
                 "\n  b was left out: too large\n  c and d were left out: not in --only\n"),
      std::string::npos)
      << table;
  EXPECT_NE(
      as_markdown(comparison, columns)
          .find("| a | all \\| averaged | 3 | 5 | 41.2 | optimizer.lr: 0.04 |"),
      std::string::npos);
  const auto json = nlohmann::json::parse(as_json(comparison, columns));
  EXPECT_EQ(json["verdict"], nlohmann::json::array());
  EXPECT_EQ(json["tuning"]["rivals"][0]["pilot_seconds"], 41.2);
  EXPECT_EQ(json["tuning"]["left_out"][0]["name"], "b");
  EXPECT_EQ(json["tuning"]["left_out"][0]["kind"], "diverged");
  EXPECT_EQ(json["tuning"]["left_out"][1]["kind"], "other");  // of an earlier version
}

TEST(Tuning, TheQuestionIsThatOfAllFolders) {
  const TempFolder folder;
  const auto asked = [&](const std::string& place, const std::string& bandwidth) {
    folder.add(
        place + "/tuning.json", formatted(
                                    R"({{"settings": 1, "seconds": 30, "link": {{"bandwidth": "{}",
            "latency": "1ms", "nodes": 2}}, "rivals": [{{"name": "a", "why": "", "tried": 1,
            "pilots": 0, "pilot_seconds": 0, "chosen": ""}}], "left_out": []}})",
                                    bandwidth));
    add_run(folder, {.name = place + "/run", .seed = place == "one" ? 1 : 2});
  };
  const auto question = [&] {
    return read_tuning(compare({folder.path()}, {}).settings)->question;
  };
  asked("one", "1Gbit");
  EXPECT_EQ(question(), (Question{30, "1Gbit", "1ms", 2}));
  asked("two", "1Gbit");
  EXPECT_EQ(question(), (Question{30, "1Gbit", "1ms", 2}));
  asked("two", "10Gbit");
  EXPECT_FALSE(question());
}

TEST(Tuning, ADamagedFileIsRefused) {
  const TempFolder folder;
  add_run(folder, {});
  const auto comparison = compare({folder.path()}, {});
  for (const char* text :
       {"{", R"({"settings": -1, "rivals": [], "left_out": []})",
        R"({"settings": 1, "rivals": [7], "left_out": []})",
        R"({"settings": 1, "rivals": [], "left_out": [{"name": "b"}]})",
        R"({"settings": 1, "rivals": [], "left_out": [{"name": "b", "why": "", "kind": 7}]})"}) {
    folder.add("tuning.json", text);
    SCOPED_TRACE(text);
    expect_error(
        [&] { read_tuning(comparison.settings); }, ErrorKind::DamagedData, {"tuning.json:1"});
  }
}

}  // namespace
}  // namespace abtrain::report
