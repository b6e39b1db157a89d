#include "sweep/points.h"

#include <filesystem>

#include "base/files.h"
#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

using Labels = std::vector<std::string>;

class Points : public testing::SweepFiles {};

TEST_F(Points, AGridHasAllCombinationsTheLastKeyFastest) {
  EXPECT_EQ(
      labels("grid: {method.group_size: [1, 2], optimizer.lr: [1e-3, 0.1, 2]}\n"
             "seeds: [7, 5]\n"),
      (Labels{
          "group_size=1,lr=0.001,seed=7", "group_size=1,lr=0.001,seed=5",
          "group_size=1,lr=0.1,seed=7", "group_size=1,lr=0.1,seed=5", "group_size=1,lr=2,seed=7",
          "group_size=1,lr=2,seed=5", "group_size=2,lr=0.001,seed=7",
          "group_size=2,lr=0.001,seed=5", "group_size=2,lr=0.1,seed=7",
          "group_size=2,lr=0.1,seed=5", "group_size=2,lr=2,seed=7", "group_size=2,lr=2,seed=5"}));
}

TEST_F(Points, OneValueIsOnePoint) {
  EXPECT_EQ(labels("grid: {workers: [4]}\n"), Labels{"workers=4"});
  EXPECT_EQ(labels("seeds: 1\n"), Labels{"seed=1"});
  EXPECT_EQ(labels("list: [{workers: 2}]\n"), Labels{"workers=2"});
  EXPECT_EQ(labels("seeds: 3\n"), (Labels{"seed=1", "seed=2", "seed=3"}));
}

TEST_F(Points, AListFollowsTheGridAndHasTheSeedsToo) {
  EXPECT_EQ(
      labels("grid: {workers: [2, 4]}\n"
             "list: [{method.name: ddp, workers: 1}, {method: {name: ddp}}]\n"
             "seeds: 2\n"),
      (Labels{
          "workers=2,seed=1", "workers=2,seed=2", "workers=4,seed=1", "workers=4,seed=2",
          "method=ddp,workers=1,seed=1", "method=ddp,workers=1,seed=2", "method=ddp,seed=1",
          "method=ddp,seed=2"}));
}

TEST_F(Points, WhatIsExcludedHasNoIndex) {
  const std::string grid =
      "grid:\n  workers: [2, 4]\n"
      "  method.rank: [{rule: fixed, rank: 8}, {rule: energy, keep: 0.5}]\n";
  EXPECT_EQ(
      labels(grid + "exclude: [{workers: 2, method.rank.rule: fixed}]\n"),
      (Labels{
          "workers=2,rule=energy,keep=0.5", "workers=4,rule=fixed,rank=8",
          "workers=4,rule=energy,keep=0.5"}));
  // However a number is spelt, and whatever the rest of a point is.
  EXPECT_EQ(
      labels(grid + "exclude: [{method.rank.keep: 5e-1}]\n"),
      (Labels{"workers=2,rule=fixed,rank=8", "workers=4,rule=fixed,rank=8"}));
  EXPECT_EQ(
      labels(grid + "seeds: 2\nexclude: [{seed: 2}, {workers: 4}]\n"),
      (Labels{"workers=2,rule=fixed,rank=8,seed=1", "workers=2,rule=energy,keep=0.5,seed=1"}));
}

TEST_F(Points, LabelsAreTheShortestEndsThatDifferAndFitForAFolder) {
  EXPECT_EQ(
      labels("grid: {model.name: [mlp], method.name: [ab], "
             "optimizer.weight_decay: [0], train.steps: [3]}\n"),
      Labels{"model=mlp,method=ab,weight_decay=0,steps=3"});
  EXPECT_EQ(
      labels("grid: {reducer.name: [powersgd], "
             "method.full_phase.reducer.name: [plain], "
             "evaluate.every: [1], checkpoint.every: [2]}\n"),
      Labels{"reducer=powersgd,full_phase.reducer=plain,evaluate.every=1step,"
             "checkpoint.every=2steps"});
  EXPECT_EQ(
      labels("grid: {model.hidden: [[64, 32], [8]], "
             "data.root: [/a b/c], checkpoint.every: [5 %]}\n"),
      (Labels{"hidden=64+32,root=_ab_c,every=5_", "hidden=8,root=_ab_c,every=5_"}));
  const Labels one = labels("grid: {data.root: [" + std::string(500, 'x') + "]}\n");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].size(), 180U);
}

TEST_F(Points, TooManyAreRefused) {
  EXPECT_NE(
      fault_of("base: base\nseeds: 10000\ngrid: {workers: [1, 2, 3, 4, 5, 6, "
               "7, 8, 9, 10, 11]}\n")
          .find("more than 100000 points"),
      std::string::npos);
}

class PointRuns : public testing::SweepFiles {};

TEST_F(PointRuns, HaveTheirValuesOverSetOverTheBase) {
  folder_.add(
      "configs/base.yaml",
      "workers: 4\nseed: 9\noutput: there\ntrain: {steps: 5, log_every: 7}\n"
      "method: {group_size: 2, rank: {rule: fixed, rank: 3}}\n");
  SweepArgs args;
  args.sets = {"train.log_every=3"};
  const auto all = runs(read(
      "base: base\nset: {train: {steps: 6, log_every: 8}, optimizer.lr: 3}\n"
      "grid: {method.rank: [{rank: 4}]}\nlist: [{optimizer.lr: 4}]\n",
      args));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].options.method.rank.rank, 4);
  EXPECT_EQ(all[0].options.method.group_size, 2);
  EXPECT_EQ(all[0].options.seed, 9U);
  EXPECT_EQ(all[0].options.train.steps, 6);
  EXPECT_EQ(all[0].options.train.log_every, 3);
  EXPECT_EQ(all[0].options.optimizer.lr, 3);
  EXPECT_EQ(all[1].options.optimizer.lr, 4);
  EXPECT_EQ(all[1].options.method.rank.rank, 3);
  EXPECT_EQ(all[0].options.output, "there/some");
  EXPECT_EQ(all[0].options.name.substr(0, 7), "rank=4-");
  EXPECT_EQ(all[0].options.name.size(), 15U);
  EXPECT_EQ(all[0].folder, "there/some/" + all[0].options.name);
}

// The folder's hash is that of what is trained, wherever and however it came.
TEST_F(PointRuns, TheSameConfigurationHasTheSameFolder) {
  const auto name = [&](const std::string& text, SweepArgs args = {}) {
    const auto all = runs(read("base: base\n" + text, args));
    EXPECT_EQ(all.size(), 1U);
    return all.at(0).options.name;
  };
  const std::string one = name("grid: {optimizer.lr: [0.5]}\nseeds: 1\n");
  SweepArgs elsewhere;
  elsewhere.name = "elsewhere";
  elsewhere.output = "/other";
  EXPECT_EQ(name("grid: {optimizer: {lr: [5e-1]}}\nseeds: [1]\n", elsewhere), one);
  EXPECT_NE(name("grid: {optimizer.lr: [0.5]}\nseeds: 1\nset: {train.steps: 3}\n"), one);
  const auto hash = [](const std::string& text) { return text.substr(text.rfind('-')); };
  EXPECT_NE(hash(name("grid: {optimizer.lr: [0.5]}\nseeds: [2]\n")), hash(one));
  EXPECT_EQ(hash(name("set: {optimizer.lr: 0.5}\nseeds: 1\n")), hash(one));
}

TEST_F(PointRuns, TheCommandLineIsASweepToo) {
  SweepArgs args;
  args.config = "base";
  args.grid = {
      "method.rank={rule: energy, keep: 0.7},{rule: fixed, rank: 8}", "model.hidden=[64, 64],[32]"};
  args.seeds = "5,7";
  args.output = "out";
  const Sweep sweep = read_sweep(args, {folder_ / "configs"});
  const auto all = runs(sweep);
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(all[7].label, "rule=fixed,rank=8,hidden=32,seed=7");
  EXPECT_EQ(all[7].options.output, "out/base_sweep");
  EXPECT_EQ(all[0].options.model.hidden, (std::vector<std::int64_t>{64, 64}));
}

// As `abtrain train` does with train.steps=20; what the sweep sets stays.
TEST_F(PointRuns, WarmupsOfTheBaseFitIntoTheStepsOfThePoint) {
  folder_.add(
      "configs/base.yaml",
      "workers: 4\ndata: {subset: 2560}\n"
      "method: {group_size: 2, warmup_steps: 2 epochs}\n"
      "schedule: {warmup_steps: 70}\n");
  const auto all =
      runs(read("base: base\nset: {schedule.warmup_steps: 5}\n"
                "grid: {train.steps: [20, 40]}\n"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].options.method.warmup_steps.value, 2);
  EXPECT_EQ(all[0].options.schedule.warmup_steps.value, 5);
  ASSERT_EQ(all[0].notes.size(), 1U);
  EXPECT_TRUE(all[0].notes[0].starts_with("method.warmup_steps: 2 steps"));
  EXPECT_TRUE(all[1].notes.empty());
  expect_has(
      fault_of("base: base\nset: {train.steps: 20}\n"
               "grid: {method.warmup_steps: [30], schedule.warmup_steps: [1]}\n"),
      "leaves no factored phase");
}

TEST_F(PointRuns, OneFaultOfManyPointsIsToldOnce) {
  const std::string error = fault_of(
      "base: base\ngrid:\n  method.group_size: [1, 3]\n"
      "  optimizer.lr: [1, 2, 3]\n");
  EXPECT_TRUE(error.starts_with(folder_ / "some.yaml:3:26:")) << error;
  EXPECT_NE(
      error.find("\n  at 3 of 6 points: 3 (group_size=3,lr=1), 4 (group_size=3,lr=2), "
                 "5 (group_size=3,lr=3)"),
      std::string::npos)
      << error;
  EXPECT_EQ(error.find("error:"), error.rfind("error:")) << error;
}

// Those that come with the program, and the one that docs/sweeps.md explains.
TEST_F(PointRuns, ReadySweepsAreRight) {
  const std::string root = ABTRAIN_SOURCE_DIR;
  const std::vector<std::string> folders{root + "/configs"};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/configs/sweeps")) {
    files.push_back(entry.path().string());
  }
  ASSERT_FALSE(files.empty());
  const std::string page = read_file(root + "/docs/sweeps.md");
  const std::size_t begin = page.find("```yaml\n") + 8;
  files.push_back(folder_.add("docs.yaml", page.substr(begin, page.find("```", begin) - begin)));
  for (const std::string& file : files) {
    SweepArgs args;
    args.file = file;
    const Sweep sweep = read_sweep(args, folders);
    const auto all = resolve_all(sweep);
    EXPECT_GT(all.size(), 1U) << file;
    check_runs(sweep, all, false);
  }
}

TEST_F(PointRuns, TwoOfTheSameConfigurationAreAFault) {
  expect_has(
      fault_of("base: base\ngrid: {workers: [2, 4]}\nlist: [{method.name: ab}]\n"),
      "the same configuration as point 1 (workers=4)\n  at point 2 (method=ab)");
}

TEST_F(PointRuns, WhatTheDataTellIsCheckedForAll) {
  const Sweep sweep = read(
      "base: base\ngrid: {method.rank: [{rule: fixed, rank: 8}, {rule: fixed, "
      "rank: 4000}], data.batch_size: [16, 100000]}\n");
  expect_error(
      [&] { check_runs(sweep, runs(sweep), true); }, ErrorKind::Config,
      {"data.batch_size", "at 2 of 4 points: 1 (rule=fixed", "method.rank.rank", "at point 2 ("});
}

}  // namespace
}  // namespace abtrain::sweep
