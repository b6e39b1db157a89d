#include "sweep/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "run_folders.h"

namespace abtrain::sweep {
namespace {

using testing::add_run;
using testing::RunFolder;

std::vector<Setting> settings_in(
    const std::string& path,
    std::optional<double> target) {
  std::vector<RunRecord> runs;
  for (const std::string& folder : find_runs({path})) {
    runs.push_back(read_run(folder, target));
  }
  return group_runs(std::move(runs));
}

std::string
error_of(const std::string& folder, ErrorKind kind, double target = 0.5) {
  try {
    read_run(folder, target);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  ADD_FAILURE() << folder << " was read";
  return "";
}

TEST(Compare, TheMedianCountsAMissAsInfinite) {
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({never, 1, 2}), 2);
  EXPECT_EQ(median({never, never, 2}), never);
  EXPECT_EQ(median({never, 2}), never);
}

TEST(Compare, ARunIsReadWithItsFirstArrival) {
  const TempFolder folder;
  const std::string place = add_run(
      folder, {.name = "a", .seed = 3, .accuracies = {0.5, 0.85, 0.7, 0.9}});
  const RunRecord run = read_run(place, 0.85);
  EXPECT_EQ(run.name, "a");
  EXPECT_EQ(run.seed, 3U);
  ASSERT_TRUE(run.arrival);
  EXPECT_DOUBLE_EQ(run.arrival->seconds, 2);
  EXPECT_EQ(run.arrival->step, 20);
  EXPECT_EQ(run.arrival->bytes, 20000);
  EXPECT_TRUE(run.finished);
  EXPECT_DOUBLE_EQ(run.ms_per_step, 100);
  EXPECT_DOUBLE_EQ(run.communicating, 0.2);
  EXPECT_DOUBLE_EQ(run.sent_bits, 8 * 1000 / 500.0);
  EXPECT_FALSE(run.encode_ms);
  EXPECT_FALSE(run.vnmse);
  EXPECT_FALSE(read_run(place, 0.91).arrival);
  EXPECT_FALSE(read_run(place, {}).arrival);
}

TEST(Compare, RunsThatDifferOnlyInTheirSeedAreOneSetting) {
  const TempFolder folder;
  for (const int seed : {3, 1, 2}) {
    add_run(
        folder,
        {.name = "thc_" + std::to_string(seed),
         .seed = seed,
         .reducer = "thc",
         .accuracies = {0.5 + 0.1 * seed, 0.9},
         .accuracy = 0.8 + 0.01 * seed,
         .encode_seconds = 0.1 * seed});
  }
  add_run(folder, {.name = "other", .seed = 1});
  const auto settings = settings_in(folder.path(), 0.7);
  ASSERT_EQ(settings.size(), 2U);
  const Setting& thc = settings[0];
  EXPECT_EQ(thc.name, "thc");
  ASSERT_EQ(thc.runs.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(thc.runs[i].seed, i + 1);
  }
  EXPECT_EQ(thc.arrived, 3U);
  EXPECT_DOUBLE_EQ(thc.seconds, 1);  // of 2, 1 and 1
  EXPECT_EQ(settings[1].name, "other");
  EXPECT_DOUBLE_EQ(settings[1].seconds, 2);

  const nlohmann::ordered_json json = comparison_json(settings, 0.7);
  EXPECT_EQ(json["target"], 0.7);
  const auto& row = json["settings"][0];
  EXPECT_EQ(row["seeds"], (std::vector<int>{1, 2, 3}));
  EXPECT_DOUBLE_EQ(row["accuracy"]["low"], 0.81);
  EXPECT_DOUBLE_EQ(row["accuracy"]["median"], 0.82);
  EXPECT_DOUBLE_EQ(row["accuracy"]["high"], 0.83);
  EXPECT_EQ(row["to_target"]["reached_by"], 3);
  EXPECT_DOUBLE_EQ(row["to_target"]["bytes"], 10000);
  // 0.2 s and half of it again, in 2 s of 20 steps.
  EXPECT_DOUBLE_EQ(row["encode_ms"], 10);
  EXPECT_DOUBLE_EQ(row["coding_share"], 0.15);
  EXPECT_TRUE(json["settings"][1]["coding_share"].is_null());
}

TEST(Compare, LosersAndMissesAreShown) {
  const TempFolder folder;
  for (const int seed : {1, 2, 3}) {
    const std::string end = "_" + std::to_string(seed);
    // One of three misses: the median stands, beside how many made it.
    add_run(
        folder,
        {.name = "good" + end,
         .seed = seed,
         .accuracies = {0.6, seed == 2 ? 0.7 : 0.8, seed == 2 ? 0.7 : 0.9}});
    add_run(
        folder,
        {.name = "bad" + end,
         .seed = seed,
         .reducer = "twobit",
         .accuracies = {0.1, 0.2, seed == 1 ? 0.85 : 0.3},
         .accuracy = 0.3,
         .finished = seed != 3});
  }
  const auto settings = settings_in(folder.path(), 0.8);
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "good");
  EXPECT_DOUBLE_EQ(settings[0].seconds, 2);
  EXPECT_TRUE(std::isinf(settings[1].seconds));
  const std::string table = comparison_table(settings, 0.8);
  EXPECT_NE(table.find("to 80.00 %"), std::string::npos) << table;
  EXPECT_NE(table.find(" 2.0 s (2 of 3) "), std::string::npos) << table;
  EXPECT_NE(table.find(" not reached (1 of 3) "), std::string::npos) << table;
  EXPECT_NE(
      table.find(folder.file("bad_3") + ": no summary.json"), std::string::npos)
      << table;
  EXPECT_NE(table.find("bad   2 of 3 "), std::string::npos) << table;
  EXPECT_TRUE(
      comparison_json(settings, 0.8)["settings"][1]["to_target"]["seconds"]
          .is_null());
  // Without a target the accuracy decides.
  EXPECT_EQ(settings_in(folder.path(), {})[0].name, "good");
  EXPECT_EQ(comparison_table(settings, {}).find("reached"), std::string::npos);
}

TEST(Compare, RepeatsOfASeedAreToldApartByTheirNames) {
  const TempFolder folder;
  for (const std::string place : {"fast", "slow"}) {
    for (const int seed : {1, 2}) {
      add_run(
          folder,
          {.name = place + "_" + std::to_string(seed),
           .seed = seed,
           .accuracies = {place == "fast" ? 0.8 : 0.5, 0.8}});
    }
  }
  const auto settings = settings_in(folder.path(), 0.8);
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "fast");
  EXPECT_EQ(settings[1].name, "slow");
  EXPECT_EQ(settings[1].runs.size(), 2U);
}

TEST(Compare, EvaluationsOfTheEstimateAreAveraged) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  folder.add(
      "a/metrics.jsonl",
      R"({"event": "compression", "step": 1, "seconds": 1, "vnmse": 0.25}
{"event": "compression", "step": 2, "seconds": 1, "vnmse": 0.5}
{"event": "compression", "step": 3, "sec)");
  EXPECT_DOUBLE_EQ(*read_run(place, 0.5).vnmse, 0.375);
  const auto settings = settings_in(place, {});
  const std::string table = comparison_table(settings, {});
  EXPECT_NE(table.find("  vNMSE\n"), std::string::npos) << table;
  EXPECT_NE(table.find("  0.375\n"), std::string::npos) << table;
  EXPECT_DOUBLE_EQ(
      comparison_json(settings, {})["settings"][0]["vnmse"], 0.375);
}

TEST(Compare, DamageIsNamedWithFileAndLine) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  const std::string metrics = place + "/metrics.jsonl";
  const std::string summary = place + "/summary.json";

  folder.add("a/metrics.jsonl", "{\"event\": \"step\"}\n{\"event\": \"st\n");
  EXPECT_EQ(
      error_of(place, ErrorKind::DamagedData),
      metrics +
          ":2: error: expected a JSON object, this is damaged or cut off");
  folder.add("a/metrics.jsonl", "{\"event\": \"step\"}\n\n");
  EXPECT_NE(
      error_of(place, ErrorKind::DamagedData).find(metrics + ":2: "),
      std::string::npos);
  folder.add("a/metrics.jsonl", "[3]\n");
  EXPECT_EQ(
      error_of(place, ErrorKind::DamagedData),
      metrics + ":1: error: expected a JSON object");
  folder.add(
      "a/metrics.jsonl", "{\"event\": \"evaluate\", \"accuracy\": \"high\"}\n");
  EXPECT_EQ(
      error_of(place, ErrorKind::DamagedData),
      metrics + ":1: error: accuracy: expected a number, got \"high\"");

  folder.add("a/metrics.jsonl", "");
  folder.add("a/summary.json", "{\n\"accuracy\": 0.5,\n\"steps\": }");
  EXPECT_EQ(
      error_of(place, ErrorKind::DamagedData),
      summary +
          ":3: error: expected a JSON object, this is damaged or cut off");
  folder.add("a/summary.json", "{\"steps\": 3}");
  EXPECT_EQ(
      error_of(place, ErrorKind::DamagedData),
      summary + ":1: error: seconds.train: expected a number, got nothing");
}

TEST(Compare, WhatIsMissingIsNamed) {
  const TempFolder folder;
  const std::string place = add_run(folder, {.name = "a"});
  EXPECT_THROW(find_runs({folder.file("nothing")}), Error);
  EXPECT_EQ(
      find_runs({place, folder.path()}), (std::vector<std::string>{place}));
  std::filesystem::remove(place + "/metrics.jsonl");
  EXPECT_NE(
      error_of(place, ErrorKind::MissingInput).find("metrics.jsonl"),
      std::string::npos);
  std::filesystem::remove(place + "/config.yaml");
  EXPECT_NE(
      error_of(place, ErrorKind::MissingInput).find(place), std::string::npos);
}

}  // namespace
}  // namespace abtrain::sweep
