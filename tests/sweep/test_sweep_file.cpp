#include "sweep/sweep_file.h"

#include "sweep_files.h"

namespace abtrain::sweep {
namespace {

struct Wrong {
  const char* name;
  const char* text;
  std::vector<const char*> says;  // @ stands for the file
};

class WrongSweep : public testing::SweepFiles, public ::testing::WithParamInterface<Wrong> {};

TEST_P(WrongSweep, IsNamedWithItsPlace) {
  const std::string error = fault_of(GetParam().text);
  for (std::string part : GetParam().says) {
    if (part[0] == '@') {
      part = (folder_ / "some.yaml") + part.substr(1);
    }
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongSweep,
    ::testing::Values(
        Wrong{"Empty", "", {"@:1:1: error: expected a sweep"}},
        Wrong{"NoBase", "seeds: 3\n", {"@: error: base: is missing"}},
        Wrong{
            "AConfiguration",
            "name: x\nextends: base\nworkers: 4\n",
            {"@:1:1: error: this is a configuration, not a sweep file; "
             "`abtrain "}},
        Wrong{
            "OtherBase",
            "base: bose\nseeds: 3\n",
            {"@:1:1: error: base: configuration 'bose' was not found",
             "did you mean 'base.yaml'?"}},
        Wrong{"Nothing", "base: base\nset: {workers: 2}\n", {"@: error: nothing is varied"}},
        Wrong{
            "UnknownSection",
            "base: base\ngird: {workers: [2]}\nseeds: 1\n",
            {"@:2:1: error: gird: unknown key, did you mean 'grid'?"}},
        Wrong{
            "UnknownKeys",
            "base: base\ngrid:\n  method: {group_sizes: [1, 2]}\n"
            "set: {train.stepps: 3}\nlist: [{wrokers: 3}]\n",
            {"@:3:12: error: method.group_sizes: unknown key, did you mean "
             "'method.group_size'?",
             "@:4:7: error: train.stepps: unknown key",
             "@:5:9: error: wrokers: unknown key, did you mean 'workers'?"}},
        Wrong{
            "Values",
            "base: base\ngrid:\n  workers: [2, two]\n  optimizer.lr: [-1]\n"
            "  model.hidden: [64, 32]\n",
            {"@:3:16: error: workers: expected an integer",
             "@:4:18: error: optimizer.lr: expected a number",
             "@:5:18: error: model.hidden: expected a list"}},
        Wrong{
            "NoList",
            "base: base\ngrid: {workers: 2, optimizer.lr: []}\n",
            {"@:2:17: error: workers: expected a list of values, got '2' "
             "(write [2])",
             "optimizer.lr: expected a list of values, got none"}},
        Wrong{
            "Twice",
            "base: base\ngrid: {workers: [2, 2], optimizer.lr: [1.0, 1]}\n",
            {"@:2:21: error: workers: given twice: 2", "optimizer.lr: given twice: 1"}},
        Wrong{
            "VariedTwice",
            "base: base\nset: {workers: 3}\n"
            "grid: {workers: [2], method.rank: [{keep: 0.5}], "
            "method.rank.keep: [0.7]}\nseeds: 2\nlist: [{seed: 3}]\n",
            {"@:2:16: error: workers: the sweep varies this key",
             "method.rank.keep: is already varied", "@:5:15: error: seed: given in 'seeds' too"}},
        Wrong{
            "Names",
            "base: base\nset: {output: x}\ngrid: {name: [a, b]}\n"
            "list: [{extends: base}]\n",
            {"@:2:7: error: output: each point has a folder of its own",
             "@:3:8: error: name: each point",
             "@:4:9: error: extends: belongs in the configuration"}},
        Wrong{
            "BadName",
            "base: base\nname: a/b\nseeds: 1\n",
            {"@:2:7: error: name: expected a folder name"}},
        Wrong{
            "Kinds",
            "base: base\nset: 3\ngrid: [1]\nlist: {workers: 3}\n"
            "exclude: []\nseeds: many\n",
            {"@:2:6: error: set: expected keys with values",
             "@:3:7: error: grid: expected keys with lists",
             "@:4:7: error: list: expected a list of points",
             "@:5:10: error: exclude: expected a list of points",
             "@:6:8: error: seeds: expected a list of seeds, or their number"}},
        Wrong{
            "Items",
            "base: base\nlist: [3, {}]\n",
            {"@:2:8: error: list: expected keys with values, as in '- "
             "{workers: 4}', got '3'",
             "@:2:11: error: list: expected keys with values"}},
        Wrong{"NoSeeds", "base: base\nseeds: 0\n", {"@:2:8: error: seeds: expected"}},
        Wrong{"Syntax", "base: base\ngrid: {workers: [1, 2}\n", {"@:2:", "not valid YAML"}},
        Wrong{
            "EmptySection",
            "base: base\nlist: [{method: {}}]\n",
            {"@:2:9: error: method: expected keys with values"}},
        Wrong{
            "ExcludesNothing",
            "base: base\ngrid: {workers: [2, 4]}\n"
            "exclude: [{workers: 3}, {optimizer.lr: 3}]\n",
            {"@:3:21: error: exclude: no point has these values",
             "@:3:40: error: optimizer.lr: is not varied"}},
        Wrong{
            "ExcludesAnotherKey",
            "base: base\ngrid: {optimizer.beta1: [0.5, 0.6]}\n"
            "exclude: [{optimizer.beta2: 0.5}]\n",
            {"@:3:29: error: optimizer.beta2: is not varied, did you mean "
             "'optimizer.beta1'?"}},
        Wrong{
            "ExcludesAll",
            "base: base\ngrid: {workers: [2, 4]}\n"
            "exclude: [{workers: 2}, {workers: 4}]\n",
            {"@: error: exclude: leaves no point at all"}}),
    [](const auto& test) { return test.param.name; });

class SweepOptions : public testing::SweepFiles {};

TEST_F(SweepOptions, TheBaseLiesBesideTheFileFirst) {
  const std::string own = folder_.add("base.yaml", "workers: 2\n");
  EXPECT_EQ(read("base: base\nseeds: 1\n").base, own);
  EXPECT_EQ(read("base: configs/base.yaml\nseeds: 1\n").base, folder_ / "configs/base.yaml");
}

TEST_F(SweepOptions, SweepsAreFoundByName) {
  const std::string place = folder_.add("configs/sweeps/mine.yaml", "base: base\nseeds: 2\n");
  SweepArgs args;
  for (const char* name : {"mine", "mine.yaml", "sweeps/mine"}) {
    args.file = name;
    const Sweep sweep = read_sweep(args, {folder_ / "configs"});
    EXPECT_EQ(sweep.file, place);
    EXPECT_EQ(sweep.name, "mine");
    EXPECT_EQ(sweep.seeds.size(), 2U);
  }
  args.file = "yours";
  const std::string what =
      expect_error([&] { read_sweep(args, {folder_ / "configs"}); }, ErrorKind::MissingInput);
  EXPECT_TRUE(what.starts_with("sweep 'yours' was not")) << what;
}

TEST_F(SweepOptions, OptionsStandOverTheFile) {
  SweepArgs args;
  args.seeds = "[4, 5, 6]";
  args.name = "mine";
  args.output = "there";
  const Sweep sweep = read("base: base\nname: x\noutput: y\nseeds: 2\n", args);
  EXPECT_EQ(sweep.seeds.size(), 3U);
  EXPECT_EQ(sweep.seeds[0][0].text, "4");
  EXPECT_EQ(sweep.name, "mine");
  EXPECT_EQ(sweep.output, "there");
}

TEST_F(SweepOptions, WhatDoesNotGoTogetherIsRefused) {
  const auto refused = [&](const SweepArgs& args, ErrorKind kind) {
    expect_error([&] { read_sweep(args, {folder_ / "configs"}); }, kind);
  };
  const std::string file = folder_.add("a.yaml", "base: base\nseeds: 1\n");
  refused({}, ErrorKind::Usage);
  refused({.file = file, .config = "base"}, ErrorKind::Usage);
  refused({.file = file, .grid = {"workers=1,2"}}, ErrorKind::Usage);
  refused({.config = "bose", .seeds = "1"}, ErrorKind::MissingInput);
  for (const char* grid : {"workers", "=1", "workers=", "workers=two"}) {
    SCOPED_TRACE(grid);
    refused({.config = "base", .grid = {grid}}, ErrorKind::Config);
  }
  refused({.config = "base", .seeds = "x"}, ErrorKind::Config);
  refused({.config = "base", .grid = {"workers=1,2"}, .sets = {"workers=3"}}, ErrorKind::Config);
  refused({.config = "base", .seeds = "1", .name = "a/b"}, ErrorKind::Config);
}

}  // namespace
}  // namespace abtrain::sweep
