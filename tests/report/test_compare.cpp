#include "report/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped.h"
#include "error_of.h"
#include "report/columns.h"
#include "report/formats.h"
#include "report/front.h"
#include "report/marked_settings.h"
#include "report/traits.h"
#include "run_folders.h"

namespace abtrain::report {
namespace {

using testing::add_run;
using testing::RunFolder;

Figure figure_of(
    const Setting& setting, const std::string& key, std::optional<double> target = {}) {
  return choose_columns(key, target).front().figure(setting);
}

TEST(Compare, TheMedianCountsAMissAsInfinite) {
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1}), 2.5);
  EXPECT_EQ(median({never, 1, 2}), 2);
  EXPECT_EQ(median({never, never, 2}), never);
  EXPECT_EQ(median({never, 2}), never);
}

// However good its other runs are.
TEST(Compare, ASettingWithADivergedRunStandsLastWithoutAMark) {
  const TempFolder folder;
  for (const int seed : {1, 2, 3}) {
    add_run(folder, {.name = formatted("good_{}", seed), .seed = seed, .accuracy = 0.8});
    add_run(
        folder,
        {.name = formatted("gone_{}", seed), .seed = seed, .reducer = "int8", .finished = false});
    add_run(
        folder, {.name = formatted("wild_{}", seed),
                 .seed = seed,
                 .reducer = "thc",
                 .accuracy = 0.95,
                 .finished = seed > 1});
    folder.add(
        formatted("gone_{}/failure.json", seed),
        R"({"exit_code": 70, "message": "layer 'fc1': it is inf\nmore", "step": 3})");
  }
  // Another failure says nothing of the setting.
  add_run(folder, {.name = "good_4", .seed = 4, .finished = false});
  folder.add("good_4/failure.json", R"({"exit_code": 74, "message": "the disk is full"})");
  // Without a step, it is the last one that was logged.
  folder.add("wild_1/failure.json", R"({"exit_code": 70, "message": "the loss is nan"})");
  const Comparison found = compare({folder.path()}, 0.6);
  EXPECT_EQ(
      mapped(found.settings, [](const Setting& s) { return s.name; }),
      (std::vector<std::string>{"good", "wild", "gone"}));
  EXPECT_EQ(found.settings[1].runs[0].diverged_at, 30);
  EXPECT_EQ(found.settings[2].runs[2].diverged_at, 3);
  EXPECT_FALSE(found.settings[0].has_diverged());
  EXPECT_EQ(seeds_text(found.settings[1]), "2 of 3");
  const auto columns = front_columns(0.6);
  for (const Column& column : columns) {
    const auto marked = marked_by(column, found.settings);
    EXPECT_EQ(std::ranges::count(marked, "wild"), 0) << column.key;
  }
  // Its median counts the diverged run as one that missed the target.
  EXPECT_EQ(figure_of(found.settings[1], "seconds_to_target", 0.6).note, "2 of 3");
}

// The target may be passed before a run diverges, or ends.
TEST(Compare, ASettingThatArrivesFirstButFailsStandsLast) {
  const TempFolder folder;
  for (const int seed : {1, 2, 3}) {
    add_run(folder, {.name = formatted("good_{}", seed), .seed = seed, .accuracies = {0.1, 0.9}});
    add_run(
        folder, {.name = formatted("wild_{}", seed),
                 .seed = seed,
                 .reducer = "thc",
                 .accuracies = {0.9},
                 .finished = seed > 1});
  }
  folder.add("wild_1/failure.json", R"({"exit_code": 70, "message": "the loss is nan"})");
  add_run(
      folder, {.name = "begun", .reducer = "int8", .accuracies = {0.9, 0.9}, .finished = false});
  EXPECT_EQ(
      mapped(compare({folder.path()}, 0.6).settings, [](const Setting& s) { return s.name; }),
      (std::vector<std::string>{"good", "wild", "begun"}));
}

TEST(Compare, ACopyOfARunIsNoSecondSeed) {
  const TempFolder folder;
  add_run(folder, {.name = "b_1", .seed = 1, .accuracies = {0.5, 0.8}, .accuracy = 0.8});
  add_run(folder, {.name = "b_2", .seed = 2, .accuracies = {0.5, 0.7}, .accuracy = 0.7});
  std::filesystem::copy(
      folder / "b_1", folder / "b_1 (copy)", std::filesystem::copy_options::recursive);
  const Comparison found = compare({folder.path()}, {});
  ASSERT_EQ(found.settings.size(), 1U);
  EXPECT_EQ(found.settings[0].runs.size(), 2U);
  EXPECT_EQ(
      found.skipped,
      (std::vector<std::string>{(folder / "b_1 (copy)") + ": a copy of " + (folder / "b_1")}));
}

TEST(Compare, RunsThatDifferOnlyInTheirSeedAreOneSetting) {
  const TempFolder folder;
  for (const int seed : {3, 1, 2}) {
    add_run(
        folder, {.name = "thc_" + std::to_string(seed),
                 .seed = seed,
                 .reducer = "thc",
                 .accuracies = {0.5 + 0.1 * seed, 0.9},
                 .accuracy = 0.8 + 0.01 * seed,
                 .encode_seconds = 0.1 * seed});
  }
  add_run(folder, {.name = "other", .seed = 1});
  const Comparison both = compare({folder.path()}, 0.7);
  ASSERT_EQ(both.settings.size(), 2U);
  EXPECT_EQ(both.varying, std::vector<std::string>{"reducer.name"});
  EXPECT_TRUE(both.skipped.empty());
  const Setting& thc = both.settings[0];
  EXPECT_EQ(thc.name, "thc");
  EXPECT_EQ(both.settings[1].name, "other");
  ASSERT_EQ(thc.runs.size(), 3U);
  EXPECT_EQ(thc.finished(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(thc.runs[i].seed, i + 1);
  }
  const Figure accuracy = figure_of(thc, "accuracy");
  EXPECT_DOUBLE_EQ(*accuracy.value, 0.82);
  EXPECT_NEAR(*accuracy.spread, 0.01, 1e-12);  // of 0.81, 0.82 and 0.83
  EXPECT_DOUBLE_EQ(*figure_of(thc, "seconds_to_target", 0.7).value, 1);
  EXPECT_DOUBLE_EQ(*figure_of(thc, "bytes_to_target", 0.7).value, 10000);
  // 0.2 s and half of it again, in 2 s of 20 steps.
  EXPECT_DOUBLE_EQ(*figure_of(thc, "encode_ms").value, 10);
  EXPECT_DOUBLE_EQ(*figure_of(thc, "coding_share").value, 0.15);
  const Setting& other = both.settings[1];
  EXPECT_DOUBLE_EQ(*figure_of(other, "seconds_to_target", 0.7).value, 2);
  EXPECT_FALSE(figure_of(other, "coding_share").value);
  EXPECT_FALSE(figure_of(other, "accuracy").spread);  // of one run
}

TEST(Compare, SaysForWhomTheWorkersWait) {
  const TempFolder folder;
  // Of 6 s of training; the others of "even" wait for less than a tenth, and
  // "short" trains for 3 s.
  const std::vector<double> six(6, 0.5);
  add_run(folder, {.name = "slow", .accuracies = six, .waiting = {2.4, 0, 1.2}});
  add_run(folder, {.name = "even", .reducer = "thc", .accuracies = six, .waiting = {0.4, 0.6, 0}});
  add_run(folder, {.name = "short", .reducer = "hylo", .waiting = {1.2, 0, 0.6}});
  add_run(folder, {.name = "old", .reducer = "topk", .accuracies = six});
  const Comparison all = compare({folder.path()}, {});
  const auto of = [&](const std::string& name) {
    return *std::ranges::find(all.settings, name, &Setting::name);
  };
  EXPECT_DOUBLE_EQ(*figure_of(of("slow"), "waiting_share").value, 0.2);
  EXPECT_DOUBLE_EQ(*figure_of(of("slow"), "waiting_max").value, 0.4);
  EXPECT_FALSE(figure_of(of("old"), "waiting_share").value);
  const auto traits = shown_traits(all.settings);
  const auto slowest = std::ranges::find(traits, "slowest", &Trait::key);
  ASSERT_NE(slowest, traits.end());
  EXPECT_EQ(slowest->of(of("slow")), "worker 1 on host1");
  EXPECT_EQ(slowest->of(of("even")), "");
  EXPECT_EQ(slowest->of(of("short")), "");
  EXPECT_EQ(slowest->of(of("old")), "");
  const auto without = shown_traits({of("even"), of("old")});
  EXPECT_EQ(std::ranges::count(without, "slowest", &Trait::key), 0);
}

TEST(Compare, LosersAndMissesAreCounted) {
  const TempFolder folder;
  for (const int seed : {1, 2, 3}) {
    const std::string end = "_" + std::to_string(seed);
    // One of three misses: the median stands, beside how many made it.
    add_run(
        folder, {.name = "good" + end,
                 .seed = seed,
                 .accuracies = {0.6, seed == 2 ? 0.7 : 0.8, seed == 2 ? 0.7 : 0.9}});
    add_run(
        folder, {.name = "bad" + end,
                 .seed = seed,
                 .reducer = "twobit",
                 .accuracies = {0.1, 0.2, seed == 1 ? 0.85 : 0.3},
                 .accuracy = 0.3,
                 .finished = seed != 3});
  }
  const Comparison both = compare({folder.path()}, 0.8);
  ASSERT_EQ(both.settings.size(), 2U);
  const Setting& good = both.settings[0];
  const Setting& bad = both.settings[1];
  EXPECT_EQ(good.name, "good");
  const Figure arrived = figure_of(good, "seconds_to_target", 0.8);
  EXPECT_DOUBLE_EQ(*arrived.value, 2);
  EXPECT_FALSE(arrived.spread);  // one time is infinite
  EXPECT_EQ(arrived.note, "2 of 3");
  const Figure missed = figure_of(bad, "seconds_to_target", 0.8);
  EXPECT_TRUE(std::isinf(*missed.value));
  EXPECT_EQ(missed.note, "1 of 3");
  EXPECT_EQ(bad.finished(), 2U);
  EXPECT_EQ(seeds_text(bad), "2 of 3");
  EXPECT_DOUBLE_EQ(*figure_of(bad, "accuracy").value, 0.3);
  // Without a target the accuracy decides.
  EXPECT_EQ(compare({folder.path()}, {}).settings[0].name, "good");
}

// Its times are not reliable, so they are never the best.
TEST(Compare, ARunBesideOtherProgramsHasNoBestTime) {
  for (const double share : {1.0, 0.27}) {
    const TempFolder folder;
    add_run(folder, {.name = "fast", .accuracies = {0.9}, .core_share = share});
    add_run(folder, {.name = "slow", .reducer = "thc", .accuracies = {0.5, 0.8}, .accuracy = 0.8});
    const Comparison both = compare({folder.path()}, {});
    ASSERT_EQ(both.settings[0].name, "fast");
    EXPECT_EQ(runs_beside_others(both.settings[0]), share < 1);
    const auto columns = choose_columns("train_seconds,accuracy,core_share", {});
    using Names = std::vector<std::string>;
    EXPECT_EQ(marked_by(columns[0], both.settings), share < 1 ? Names() : Names{"fast"});
    EXPECT_EQ(marked_by(columns[1], both.settings), Names{"fast"});
    for (const Column& column : front_columns({})) {
      const bool unreliable = column.is_time && share < 1;
      if (column.best == Best::Front && column.figure(both.settings[0]).value) {
        EXPECT_EQ(marked_by(column, both.settings), unreliable ? Names() : Names{"fast"});
      }
    }
    const std::string note = "in fast (27 %): these times are not reliable and get no mark.";
    for (const std::string& text : {as_table(both, columns, false), as_markdown(both, columns)}) {
      EXPECT_EQ(text.find(note) != std::string::npos, share < 1) << text;
    }
    const auto json = nlohmann::json::parse(as_json(both, columns));
    EXPECT_EQ(json["settings"][0]["beside_others"], share < 1);
    EXPECT_EQ(json["settings"][1]["beside_others"], false);
  }
}

TEST(Compare, OfATextFewerBitsPerByteAreBetter) {
  const TempFolder folder;
  add_run(folder, {.name = "worse", .accuracies = {3, 2.5, 2.2}, .accuracy = 2.2, .text = true});
  add_run(
      folder, {.name = "better",
               .reducer = "thc",
               .accuracies = {2.6, 2.3, 1.9},
               .accuracy = 1.9,
               .text = true});
  EXPECT_EQ(compare({folder.path()}, {}).settings[0].name, "better");
  const Comparison both = compare({folder.path()}, 2.4);
  EXPECT_EQ(both.settings[0].name, "better");
  EXPECT_DOUBLE_EQ(*figure_of(both.settings[0], "seconds_to_target", 2.4).value, 2);
  EXPECT_DOUBLE_EQ(*figure_of(both.settings[1], "seconds_to_target", 2.4).value, 3);
  EXPECT_FALSE(figure_of(both.settings[0], "accuracy").value);
  const auto bits = figures(choose_columns("bits_per_byte", {}).front(), both.settings);
  EXPECT_TRUE(bits[0].is_best);
  EXPECT_FALSE(bits[1].is_best);
  EXPECT_EQ(choose_columns("steps_to_target", 2.4)[0].title, "steps to 2.4 bits per byte");
  const auto points = front_points(choose_columns("bytes", {}).front(), both.settings);
  EXPECT_EQ(on_front(points, {{0, 1}}), (std::vector<bool>{true, false}));
}

TEST(Compare, OfARegressionItIsR2) {
  const TempFolder folder;
  add_run(
      folder,
      {.name = "worse", .accuracies = {-1.5, 0.2, 0.7}, .accuracy = 0.7, .regression = true});
  add_run(
      folder, {.name = "better",
               .reducer = "thc",
               .accuracies = {-2, 0.5, 0.8},
               .accuracy = 0.8,
               .regression = true});
  const Comparison both = compare({folder.path()}, 0.5);
  EXPECT_EQ(both.settings[0].name, "better");
  EXPECT_DOUBLE_EQ(*figure_of(both.settings[0], "seconds_to_target", 0.5).value, 2);
  EXPECT_DOUBLE_EQ(*figure_of(both.settings[0], "r2").value, 0.8);
  EXPECT_FALSE(figure_of(both.settings[0], "accuracy").value);
  const std::string table = as_table(both, choose_columns("default", {}), false);
  EXPECT_NE(table.find("R²"), std::string::npos) << table;
  EXPECT_NE(table.find("0.8000"), std::string::npos) << table;
  EXPECT_EQ(table.find("accura"), std::string::npos) << table;
}

TEST(Compare, TheBestOfAColumnIsMarked) {
  const TempFolder folder;
  add_run(folder, {.name = "a", .reducer = "topk", .accuracy = 0.7});
  add_run(folder, {.name = "b", .reducer = "thc", .accuracy = 0.9});
  add_run(folder, {.name = "c", .reducer = "hylo", .accuracy = 0.9});
  add_run(folder, {.name = "d", .reducer = "twobit", .accuracies = {0.1}, .finished = false});
  const Comparison all = compare({folder.path()}, 0.85);
  ASSERT_EQ(all.settings.size(), 4U);
  const auto best = [&](const std::string& key) {
    auto names = marked_by(choose_columns(key, 0.85).front(), all.settings);
    std::ranges::sort(names);
    return join(names, "");
  };
  EXPECT_EQ(best("accuracy"), "bc");
  EXPECT_EQ(best("seconds_to_target"), "abc");  // d has never arrived
  EXPECT_EQ(best("ms_per_step"), "");           // all are equal
}

TEST(Compare, RepeatsOfASeedAreToldApartByTheirNames) {
  const TempFolder folder;
  for (const std::string place : {"fast", "slow"}) {
    for (const int seed : {1, 2}) {
      add_run(
          folder, {.name = place + "_" + std::to_string(seed),
                   .seed = seed,
                   .accuracies = {place == "fast" ? 0.8 : 0.5, 0.8}});
    }
  }
  const auto settings = compare({folder.path()}, 0.8).settings;
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "fast");
  EXPECT_EQ(settings[1].name, "slow");
  EXPECT_EQ(settings[1].runs.size(), 2U);
}

TEST(Compare, SettingsOfOneNameAreCalledByWhatDiffers) {
  const TempFolder folder;
  // As a sweep writes them: names say the seed.
  add_run(folder, {.name = "x,seed=1", .seed = 1});
  add_run(folder, {.name = "x,seed=2", .seed = 2});
  EXPECT_EQ(compare({folder.path()}, {}).settings[0].name, "x");
  // And their hashes, which are no part of the setting.
  const TempFolder points;
  add_run(points, {.name = "rank=8,seed=1-1f0c66ad", .seed = 1});
  add_run(points, {.name = "rank=8,seed=2-00aa11bb", .seed = 2});
  add_run(points, {.name = "rank=9-00aa11bc", .reducer = "thc"});
  add_run(points, {.name = "thc-00aa11bc", .reducer = "topk"});
  auto names = mapped(compare({points.path()}, {}).settings, &Setting::name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"rank=8", "rank=9", "thc-00aa11bc"}));
  add_run(folder, {.name = "y_3", .seed = 3});
  EXPECT_EQ(compare({folder.path()}, {}).settings[0].name, "x, ...");
  add_run(folder, {.name = "x_3", .seed = 3, .reducer = "thc"});
  const auto settings = compare({folder.path()}, {}).settings;
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "reducer.name=plain");
  EXPECT_EQ(settings[1].name, "x");
}

TEST(Compare, PointsOfTwoSweepsAreToldApartBriefly) {
  const TempFolder folder;
  add_run(folder, {.name = "first/rank=8-1f0c66ad"});
  add_run(folder, {.name = "second/rank=8-00aa11bb", .reducer = "thc"});
  const auto names = [&] {
    auto result = mapped(compare({folder.path()}, {}).settings, &Setting::name);
    std::ranges::sort(result);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(), (Names{"reducer.name=plain", "reducer.name=thc"}));
  for (const auto& [name, reducer, number] :
       {std::tuple("first/rank=8-1f0c66ad", "powersgd", 200'000),
        std::tuple("second/rank=8-00aa11bb", "thc", 100'000)}) {
    add_run(
        folder,
        {.name = name,
         .reducer = formatted(
             "{0}, min_numel: {1}, dense_steps: {1}, evaluate_every: {1}", reducer, number)});
  }
  EXPECT_EQ(names(), (Names{"first/rank=8", "second/rank=8"}));
}

TEST(Compare, WhatCannotBeReadIsNamedAndSkipped) {
  const TempFolder folder;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    add_run(folder, {.name = name});
  }
  folder.add("b/metrics.jsonl", "{\"event\": \"st\n");
  folder.add("c/config.yaml", "workers: 4\nmethd: {name: ddp}\nsed: 3\n");
  folder.add("d/summary.json", "");
  std::filesystem::remove(folder / "e/config.yaml");
  std::filesystem::create_directory(folder / "f");
  folder.add("log.txt", "");
  const Comparison some = compare({folder.path(), folder / "log.txt"}, {});
  ASSERT_EQ(some.settings.size(), 1U);
  EXPECT_EQ(some.settings[0].name, "a");
  ASSERT_EQ(some.skipped.size(), 6U);
  const auto begins = [&](std::size_t i, const std::string& text) {
    EXPECT_EQ(some.skipped[i].find(folder.path() + text), 0U) << some.skipped[i];
    EXPECT_EQ(some.skipped[i].find('\n'), std::string::npos);
  };
  begins(0, "/log.txt: expected a run folder");
  begins(1, "/b/metrics.jsonl:1: error: ");
  begins(2, "/c/config.yaml:2:1: error: methd: ");
  EXPECT_NE(some.skipped[2].find("(and 1 more)"), std::string::npos);
  begins(3, "/d/summary.json:1: error: ");
  begins(4, "/e: it has no config.yaml");
  begins(5, "/f: it has no config.yaml");
}

TEST(Compare, WithoutAnyRunTheFirstErrorDecides) {
  const TempFolder folder;
  add_run(folder, {.name = "a"});
  folder.add("a/metrics.jsonl", "{}\n");
  std::filesystem::create_directory(folder / "b");
  expect_error([&] { compare({folder.path()}, {}); }, ErrorKind::DamagedData);
  expect_error([&] { compare({folder / "b"}, {}); }, ErrorKind::MissingInput);
  expect_error([&] { compare({folder / "nothing"}, {}); }, ErrorKind::MissingInput);
}

TEST(Compare, ColumnsAreChosenByName) {
  EXPECT_EQ(choose_columns("default", {}).size(), 10U);
  EXPECT_EQ(choose_columns("default", 0.5).size(), 12U);
  const auto two = choose_columns("vnmse, bytes", {});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].key, "vnmse");
  EXPECT_EQ(two[1].key, "bytes");
  EXPECT_THROW(choose_columns("byte", {}), Error);
  EXPECT_THROW(choose_columns("", {}), Error);
  EXPECT_THROW(choose_columns("steps_to_target", {}), Error);
  EXPECT_EQ(choose_columns("steps_to_target", 0.5)[0].title, "steps to 50 %");
}

}  // namespace
}  // namespace abtrain::report
