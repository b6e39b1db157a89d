#include "sweep/halving.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "config/config.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

constexpr const char* kRivals =
    "halving:\n"
    "  pilot: {data.validation: 100}\n"
    "  rivals:\n"
    "    one:\n"
    "      why: first\n"
    "      set: {method.name: ddp, train.steps: 800}\n"
    "      tune: [{}, {optimizer.lr: 0.5}, {optimizer.lr: 0.25}]\n"
    "    two:\n"
    "      set: {train.steps: 80, optimizer.lr: 0.1}\n"
    "      tune: [{}, {optimizer.lr: 0.2}, {optimizer.lr: 0.3}]\n"
    "  left_out: {three: \"needs a GPU\", four: {kind: diverged, why: at once}}\n"
    "seeds: [4, 9]\n";

class HalvingOf : public testing::SweepFiles {
 protected:
  // `seconds`: of runs at full length; 0: none are given.
  Sweep read_rivals(double seconds = 0) const {
    Sweep sweep = read("base: base\noutput: " + folder_.path() + "\nname: it\n" + kRivals);
    sweep.halving->seconds = seconds;
    return sweep;
  }
  Round round(std::size_t index, double seconds = 0) const {
    return round_of(read_rivals(seconds), index);
  }
  // Writes what a pilot leaves: `quality` by the held-out images, and a test
  // accuracy that would choose otherwise.
  void finish(const PointRun& run, double quality, const std::string& summary = "") const {
    make_folders(run.folder);
    atomic_write(run.folder + "/config.yaml", config::to_yaml(run.options));
    atomic_write(run.folder + "/summary.json", "{" + summary + "\"seconds\": {\"train\": 2.5}}");
    atomic_write(
        run.folder + "/metrics.jsonl",
        formatted(
            R"({{"event":"evaluate","accuracy":0.1,"validation_accuracy":0.99,"validation_loss":1}}
{{"event":"evaluate","accuracy":{},"validation_accuracy":{},"validation_loss":1}}
{{"event":"end"}}
)",
            1 - quality, quality));
  }
  void diverge(const PointRun& run) const {
    make_folders(run.folder);
    atomic_write(run.folder + "/config.yaml", config::to_yaml(run.options));
    atomic_write(run.folder + "/failure.json", "{\"exit_code\": 70}");
  }
};

TEST_F(HalvingOf, RoundsAndLengths) {
  Sweep sweep = read_rivals();
  const auto lengths = [&](std::int64_t settings) {
    sweep.halving->settings = settings;
    std::vector<double> all;
    for (std::size_t round = 0; round < rounds_of(sweep); ++round) {
      all.push_back(length_of(*sweep.halving, round));
    }
    return all;
  };
  EXPECT_EQ(lengths(1), (std::vector<double>{1}));
  EXPECT_EQ(lengths(3), (std::vector<double>{0.25, 0.25, 0.5, 1}));
  EXPECT_EQ(lengths(6), (std::vector<double>{0.25, 0.25, 0.25, 0.25, 0.5, 1}));
  // Two rivals: three pilots each, two more, one more; replacements; four that decide; two seeds.
  const auto counts = [&](auto count) {
    std::vector<std::size_t> all;
    for (std::size_t round = 0; round < rounds_of(sweep); ++round) {
      all.push_back(count(sweep, round));
    }
    return all;
  };
  EXPECT_EQ(counts(expected_runs), (std::vector<std::size_t>{6, 4, 2, 0, 8, 4}));
  EXPECT_EQ(counts(runs_in), (std::vector<std::size_t>{6, 6, 6, 6, 8, 4}));
  sweep.halving->finalist_seeds = 5;
  EXPECT_EQ(counts(runs_in).back(), 6U);
  EXPECT_EQ(steps_in(1001, 0.25), 250);
  EXPECT_EQ(steps_in(3, 0.25), 1);
}

TEST_F(HalvingOf, WorkIsThatOfAllRounds) {
  // Three pilots of a quarter, four of a half, and the seeds.
  EXPECT_EQ(work_of(3, 2).runs, 9U);
  EXPECT_EQ(work_of(3, 2).lengths, 3 * 0.25 + 4 * 0.5 + 2);
  EXPECT_EQ(work_of(1, 4).runs, 4U);
  EXPECT_EQ(work_of(1, 4).lengths, 4);
}

TEST_F(HalvingOf, PilotsAreShortAndHaveOneSeed) {
  const auto runs = this->runs(round(0).sweep);
  ASSERT_EQ(runs.size(), 6U);
  EXPECT_EQ(runs[1].label, "one,setting=2");
  EXPECT_EQ(runs[1].options.train.steps, 200);
  EXPECT_EQ(runs[1].options.optimizer.lr, 0.5);
  EXPECT_EQ(runs[1].options.data.validation, 100);
  EXPECT_EQ(runs[3].options.optimizer.lr, 0.1);
  EXPECT_EQ(runs[4].options.optimizer.lr, 0.2);
  EXPECT_EQ(runs[3].options.train.steps, 20);
  EXPECT_TRUE(runs[0].folder.starts_with(folder_ / "it/pilots/1/"));
}

// Each pilot took 2.5 s, those of a rival that diverged do not count.
TEST_F(HalvingOf, StepsFollowFromWhatThePilotsTook) {
  auto runs = this->runs(round(0, 20).sweep);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    i == 0 ? diverge(runs[i]) : finish(runs[i], 0.5 + 0.01 * static_cast<double>(i));
  }
  EXPECT_EQ(round(1, 20).runs, 0U);
  runs = this->runs(round(2, 20).sweep);
  EXPECT_EQ(runs[0].options.train.seconds, 0);
  EXPECT_EQ(runs[0].options.train.steps, 800);  // 200 steps took 2.5 s
  EXPECT_EQ(runs[4].options.train.steps, 80);
  for (const PointRun& run : runs) {
    finish(run, 0.5);
  }
  runs = this->runs(round(3, 20).sweep);
  EXPECT_EQ(runs[0].options.train.seconds, 20);
  EXPECT_EQ(runs[0].options.train.steps, 6400);  // 800 steps took 2.5 s
  EXPECT_EQ(runs[1].options.train.steps, 640);
}

// The time over a link is computed, so that no clock shows it.
TEST_F(HalvingOf, OnALinkRunsHaveANumberOfSteps) {
  const std::string rivals = "  rivals:\n    a: {set: {train.steps: 8}, tune: [{}]}\n";
  const Round here = round_of(read("base: base\nhalving:\n  seconds: 30\n" + rivals), 0);
  EXPECT_EQ(runs(here.sweep)[0].options.train.seconds, 30);
  const std::string link = "base: base\nhalving:\n  seconds: 30\n  bandwidth: 100Mbit\n";
  const Round linked = round_of(read(link + rivals), 0);
  EXPECT_EQ(runs(linked.sweep)[0].options.train.seconds, 0);
  EXPECT_EQ(runs(linked.sweep)[0].options.train.steps, 8);
}

TEST_F(HalvingOf, ReadsTimeAndLink) {
  const Sweep sweep = read(
      "base: base\nhalving:\n  seconds: 30\n  bandwidth: 100Mbit\n  latency: "
      "1ms\n  nodes: 2\n  rivals:\n    a: {set: {train.steps: 8}, tune: "
      "[{}]}\n");
  EXPECT_EQ(sweep.halving->seconds, 30);
  EXPECT_EQ(sweep.halving->link.bandwidth, "100Mbit");
  EXPECT_EQ(sweep.halving->link.latency, "1ms");
  EXPECT_EQ(sweep.halving->link.nodes, 2);
}

TEST_F(HalvingOf, TheBestIsTrainedInFullIfItIsBetterByMoreThanTheSpread) {
  auto runs = this->runs(round(0).sweep);
  for (const std::size_t i : {0, 1, 3, 4}) {
    finish(runs[i], 0.6 + 0.01 * static_cast<double>(i));
  }
  EXPECT_THROW(round(1), Error);  // a pilot of each rival is missing
  diverge(runs[2]);
  finish(runs[5], 0.62);
  EXPECT_EQ(round(1).runs, 0U);  // none has repeated another one
  runs = this->runs(round(2).sweep);
  ASSERT_EQ(runs.size(), 8U);
  EXPECT_EQ(runs[0].label, "one,setting=1");
  EXPECT_EQ(runs[1].label, "one,setting=2");
  EXPECT_EQ(runs[3].label, "one,setting=2,seed=2");
  EXPECT_EQ(runs[3].options.seed, 2U);
  EXPECT_EQ(runs[5].label, "two,setting=2");
  EXPECT_EQ(runs[0].options.train.steps, 400);
  // Of `one`, setting 2 is ahead by 0.01 with spreads of 0.014 and 0; of `two`, by 0.02.
  for (const auto& [i, quality] : std::vector<std::pair<std::size_t, double>>{
           {0, 0.8}, {1, 0.81}, {2, 0.82}, {3, 0.83}, {4, 0.8}, {5, 0.82}, {6, 0.81}, {7, 0.83}}) {
    finish(runs[i], quality);
  }
  const Round full = round(3);
  EXPECT_TRUE(full.is_full);
  EXPECT_TRUE(full.is_last);
  runs = this->runs(full.sweep);
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0].label, "one,seed=4");
  EXPECT_EQ(runs[1].label, "two,seed=4");
  EXPECT_EQ(runs[2].options.seed, 9U);
  EXPECT_EQ(runs[3].label, "two,seed=9");
  EXPECT_EQ(runs[0].options.train.steps, 800);
  EXPECT_EQ(runs[0].options.optimizer.lr, 1e-3);
  EXPECT_EQ(runs[0].options.data.validation, 0);
  EXPECT_EQ(runs[3].options.optimizer.lr, 0.2);

  write_tuning(read_rivals(), full);
  const std::string tuning = read_file(folder_ / "it/tuning.json", kMaxText);
  EXPECT_NE(tuning.find("\"chosen\": \"optimizer.lr: 0.2\""), std::string::npos) << tuning;
  EXPECT_NE(tuning.find("\"chosen\": \"as configured\""), std::string::npos) << tuning;
  EXPECT_NE(tuning.find("\"pilot_seconds\": 17.5"), std::string::npos) << tuning;
  const auto left_out = nlohmann::json::parse(tuning)["left_out"];
  ASSERT_EQ(left_out.size(), 2U);
  EXPECT_EQ(left_out[0]["why"], "needs a GPU");
  EXPECT_EQ(left_out[0]["kind"], "other");
  EXPECT_EQ(left_out[1]["name"], "four");
  EXPECT_EQ(left_out[1]["why"], "at once");
  EXPECT_EQ(left_out[1]["kind"], "diverged");
}

// Of three rivals, the two best ones; one that diverged is none of them.
TEST_F(HalvingOf, TheTwoBestRivalsGetMoreSeeds) {
  const auto rivals = [&] {
    return read(
        "base: base\noutput: " + folder_.path() +
        "\nname: it\nhalving:\n  finalist_seeds: 3\n  rivals:\n"
        "    a: {set: {train.steps: 8, optimizer.lr: 0.1}, tune: [{}]}\n"
        "    b: {set: {train.steps: 8, optimizer.lr: 0.2}, tune: [{}]}\n"
        "    c: {set: {train.steps: 8, optimizer.lr: 0.3}, tune: [{}]}\n"
        "seeds: [7, 5]\n");
  };
  const Sweep sweep = rivals();
  ASSERT_EQ(rounds_of(sweep), 2U);
  const Round full = round_of(sweep, 0);
  EXPECT_TRUE(full.is_full);
  EXPECT_FALSE(full.is_last);
  const auto runs = this->runs(full.sweep);
  ASSERT_EQ(runs.size(), 6U);
  for (const PointRun& run : runs) {
    const bool is_a = run.label.starts_with("a");
    is_a&& run.options.seed == 5
        ? diverge(run)
        : finish(run, is_a ? 0.9 : 0.4, formatted("\"accuracy\": {}, ", is_a ? 0.9 : 0.4));
  }
  const Round last = round_of(sweep, 1);
  EXPECT_TRUE(last.is_last);
  EXPECT_EQ(last.runs, 2U);
  const auto all = this->runs(last.sweep);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[0].label, "b,seed=8");
  EXPECT_EQ(all[1].label, "c,seed=8");
  EXPECT_EQ(all[2].folder, runs[0].folder);
}

TEST_F(HalvingOf, MoreSeedsFollowTheConfigurationsOwn) {
  const Sweep sweep = read(
      "base: base\noutput: " + folder_.path() +
      "\nname: it\nset: {seed: 5}\nhalving:\n  finalist_seeds: 3\n  rivals:\n"
      "    a: {set: {train.steps: 8, optimizer.lr: 0.1}, tune: [{}]}\n"
      "    b: {set: {train.steps: 8, optimizer.lr: 0.2}, tune: [{}]}\n");
  for (const PointRun& run : this->runs(round_of(sweep, 0).sweep)) {
    EXPECT_EQ(run.options.seed, 5U);
    finish(run, 0.4, "\"accuracy\": 0.4, ");
  }
  const auto all = this->runs(round_of(sweep, 1).sweep);
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].label, "a,seed=6");
  EXPECT_EQ(all[3].label, "b,seed=7");
}

// Rate, decay, interval, and so on: each from the best setting so far.
TEST_F(HalvingOf, ASearchGoesOnFromTheBestSetting) {
  const auto at = [&](std::size_t round, std::size_t settings = 7) {
    return round_of(
        read(
            "base: base\noutput: " + folder_.path() + "\nname: it\n" +
            formatted("halving:\n  settings: {}\n", settings) +
            "  rivals:\n    a:\n      set: {method.name: ddp, train.steps: 800, optimizer.lr: "
            "0.1,\n"
            "            optimizer.weight_decay: 0}\n"
            "      tune: [{}, {optimizer.lr: x 2}, {optimizer.lr: x0.5}, {optimizer.weight_decay: "
            "0},\n"
            "             {optimizer.weight_decay: 0.1}, {optimizer.weight_decay: x 2},\n"
            "             {method.sync_every: x 2}, {optimizer.beta1: x 2}]\n"),
        round);
  };
  const auto rates = [](const std::vector<PointRun>& runs) {
    std::vector<std::pair<double, double>> all;
    for (const PointRun& run : runs) {
      all.emplace_back(run.options.optimizer.lr, run.options.optimizer.weight_decay);
    }
    return all;
  };
  using Rates = std::vector<std::pair<double, double>>;
  auto runs = this->runs(at(0).sweep);
  EXPECT_EQ(rates(runs), (Rates{{0.1, 0}, {0.2, 0}, {0.05, 0}}));
  finish(runs[0], 0.5);
  finish(runs[1], 0.6);
  finish(runs[2], 0.5);  // the bits of the first: it does not count
  // A decay of 0 is there already; twice 0 is 0; ddp has no interval; beta1 would be 1.8.
  runs = this->runs(at(1).sweep);
  // Then it begins again. Two settings, and one for the repeated one.
  EXPECT_EQ(rates(runs), (Rates{{0.2, 0.1}, {0.4, 0}, {0.1, 0.1}}));
  EXPECT_EQ(runs[0].label, "a,setting=4");
}

TEST_F(HalvingOf, WhatIsSetForAllHoldsForAllRivals) {
  const std::string rivals =
      "halving:\n  rivals:\n"
      "    a: {set: {method.name: ddp, train.steps: 8, optimizer.weight_decay: 0}, tune: [{}]}\n"
      "    b: {set: {train.steps: 8, optimizer.weight_decay: 0.1}, tune: [{}]}\n";
  for (const bool is_file : {true, false}) {
    const Sweep sweep = read(
        std::string("base: base\n") +
            (is_file ? "set: {optimizer.weight_decay: 0.2}\n" : "set: {workers: 2}\n") + rivals,
        {.sets = is_file ? std::vector<std::string>{}
                         : std::vector<std::string>{"optimizer.weight_decay=0.2"}});
    for (const PointRun& run : runs(round_of(sweep, 0).sweep)) {
      EXPECT_EQ(run.options.optimizer.weight_decay, 0.2) << run.label;
    }
  }
  EXPECT_NE(
      fault_of("base: base\nset: {method.name: ab}\n" + rivals)
          .find("method.name: cannot hold for all: the rival a needs ddp"),
      std::string::npos);
  EXPECT_NE(
      fault_of("base: base\nset: {train.steps: 9}\n" + rivals)
          .find("train.steps: stands in each rival's own set"),
      std::string::npos);
}

TEST_F(HalvingOf, FactorsAreChecked) {
  const auto fault = [&](const std::string& move) {
    return fault_of(
        "base: base\nhalving:\n  rivals:\n    a: {set: {train.steps: 8}, tune: [{}, " + move +
        "]}\n");
  };
  EXPECT_NE(fault("{optimizer.lr: x 0}").find("expected a factor above 0"), std::string::npos);
  EXPECT_NE(fault("{optimizer.rate: x 2}").find("expected a key with a number"), std::string::npos);
  EXPECT_NE(fault("{optimizer.name: x 2}").find("expected a key with a number"), std::string::npos);
  // A batch of 19.2.
  expect_error(
      [&] {
        round_of(
            read("base: base\nhalving:\n  rivals:\n    a: {set: {train.steps: 8}, tune: "
                 "[{data.batch_size: x 0.3}]}\n"),
            0);
      },
      ErrorKind::Config, {"some.yaml:4:", "halving.rivals.a.tune: expected at least one setting"});
}

TEST_F(HalvingOf, RivalsAreTunedEqually) {
  EXPECT_NE(
      fault_of("base: base\nhalving:\n  rivals:\n"
               "    a: {set: {train.steps: 8}, tune: [{}, {seed: 2}]}\n"
               "    b: {set: {train.steps: 8}, tune: [{}]}\n")
          .find("expected as many settings as a has, 2"),
      std::string::npos);
  EXPECT_NE(
      fault_of("base: base\nhalving:\n  rivals:\n    a: {tune: [{}]}\n")
          .find("expected train.steps"),
      std::string::npos);
  EXPECT_NE(
      fault_of("base: base\ngrid: {workers: [2]}\nhalving:\n  rivals:\n"
               "    a: {set: {train.steps: 8}, tune: [{}]}\n")
          .find("does not go with halving"),
      std::string::npos);
}

TEST_F(HalvingOf, WhyARivalIsLeftOutIsChecked) {
  const auto fault = [&](const std::string& why) {
    return fault_of(
        "base: base\nhalving:\n  rivals:\n    a: {set: {train.steps: 8}, tune: [{}]}\n"
        "  left_out: {b: " +
        why + "}\n");
  };
  EXPECT_NE(fault("{kind: gone}").find("kind: expected one of other, diverged"), std::string::npos);
  EXPECT_NE(
      fault("[1]").find("halving.left_out.b: expected a reason, or {kind: "), std::string::npos);
}

}  // namespace
}  // namespace abtrain::sweep
