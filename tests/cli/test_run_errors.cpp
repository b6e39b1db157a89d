// Runs and evaluations that end badly, or should have been configured otherwise:
// what they say and with which code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"
#include "small_run.h"
#include "temp_folder.h"
#include "with_variables.h"

namespace {

using namespace abtrain;
using nlohmann::json;

// The last loss is that of before the update that breaks the factors, whose
// product is decomposed right after it.
TEST(CliRun, BrokenFactorsAreDivergence) {
  const TempFolder folder;
  const std::string broken = small_run(
      folder,
      "--set method.full_rank_steps=0 --set method.ramp=none"
      " --set train.clip_norm=0 --set 'optimizer={name: sgd, lr: 1e-3}'"
      " --set 'schedule={name: step, step_factor: 1e38, milestones: [0.6, 0.62],"
      " warmup_steps: 0}'");
  for (const char* resume : {"", " --resume auto"}) {
    const std::string said =
        expect_exit(70, broken + resume, {"layer 'fc", "cannot be decomposed"});
    EXPECT_FALSE(contains(said, "linalg")) << said;
    const json failure = json::parse(content(folder.file("small/failure.json")));
    EXPECT_EQ(failure["exit_code"], 70);
    expect_has(failure["message"], "layer 'fc");
    EXPECT_FALSE(failure.contains("step"));
  }
}

TEST(CliRun, ADivergenceIsRecordedWithItsStep) {
  const TempFolder folder;
  expect_exit(
      70, small_run(
              folder,
              "--set optimizer.name=sgd --set optimizer.lr=1e30 --set method.factor_lr_scale=1"
              " --set train.clip_norm=0 --set schedule.name=constant"
              " --set schedule.warmup_steps=0"));
  const json failure = json::parse(content(folder.file("small/failure.json")));
  EXPECT_EQ(failure["step"], 2);
  expect_has(failure["message"], "step 2: the loss of worker");
}

// Whatever ends the training: here images that are damaged, in files whose
// names are not UTF-8.
TEST(CliRun, WhatIsFoundWhileTrainingIsRecorded) {
  const TempFolder folder;
  for (const char* part : {"train", "val"}) {
    for (const char* image : {"a/x\xff", "b/x\xff", "a/y", "b/y"}) {
      folder.add(std::string("images/") + part + "/" + image + ".jpg", "no");
    }
  }
  expect_exit(
      65, "--config fashion_mnist_mlp --name r --output '" + folder.path() +
              "' --set workers=2 --set method.name=ddp --set train.steps=4"
              " --set 'data={name: image-folder, batch_size: 1, root: " +
              folder.file("images") + ", image_size: 8, resize: 8}'");
  const json failure = json::parse(content(folder.file("r/failure.json")));
  EXPECT_EQ(failure["exit_code"], 65);
  expect_has(failure["message"], "x\ufffd.jpg");
  expect_has(run("report '" + folder.path() + "'", Stream::Error).text, "/r: failed at step 0");
}

// What was silently never done is said, before and at the start of the run.
TEST(CliRun, WarnsOfWhatNeverHappens) {
  const TempFolder folder;
  const std::string late = small_run(folder, "--set method.name=diloco --set method.sync_every=40");
  const std::string said =
      "method.sync_every: the first synchronization would be used after 42 "
      "steps, but the run has 8";
  expect_has(output_of("plan " + late), said);
  expect_exit(0, late, {said});
}

// Numbers of the command line itself.
TEST(CliRun, AbsurdNumbersOfOptionsAreWrongUse) {
  const TempFolder folder;
  const std::string plan = "plan " + small_run(folder) + " --bandwidth 1Gbit ";
  for (const std::string number : {"9223372036854775807", "1e300"}) {
    for (const std::string& line :
         {plan + "--nodes " + number, plan + "--workers-here " + number,
          plan + "--compute " + number + "h", plan + "--latency " + number + "h",
          "plan " + small_run(folder) + " --bandwidth " + number + "Tbit",
          "report --target " + number + " '" + folder.path() + "'",
          "sweep --config fashion_mnist_mlp --seeds 2 --jobs " + number,
          "sweep --config fashion_mnist_mlp --seeds 2 --task " + number}) {
      expect_exit(2, line);
    }
  }
}

TEST(CliRun, AHalfSetLauncherIsNamed) {
  const TempFolder folder;
  const abtrain::testing::WithVariables variables{{"OMPI_COMM_WORLD_SIZE", "4"}};
  expect_exit(2, small_run(folder), {"OMPI_COMM_WORLD_RANK"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("small")));
}

TEST(CliRun, AFullDiskIsNamed) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("small"));
  std::filesystem::create_symlink("/dev/full", folder.file("small/metrics.jsonl"));
  // The run has gone on to its end.
  expect_exit(74, small_run(folder), {"metrics.jsonl", "No space left", "step 8/8"});
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/summary.json")));
}

// As a limit on the size of files sends a signal too.
TEST(CliRun, AFileThatMayNotGrowIsAFullDisk) {
  const TempFolder folder;
  expect_exit(
      74, small_run(folder, "--set checkpoint.every=4"),
      {"step 4: no checkpoint was saved",
       "abtrain: cannot write '" + folder.file("small/model.safetensors") + "': File too large"},
      "ulimit -f 28; ");
}

// Training is worth more than the log that nobody reads any more.
TEST(CliRun, ATerminalThatGoesEndsNothing) {
  const TempFolder folder;
  run("train " + small_run(folder) + " 2>&1 | true; :", Stream::Out);
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/summary.json")));
}

TEST(CliRun, EvaluateNamesDamageAndChanges) {
  const TempFolder folder;
  expect_exit(0, small_run(folder));
  const std::string evaluate = "evaluate '" + folder.file("small") + "' ";
  const std::string path = folder.file("small/model.safetensors");
  const std::string whole = content(path);
  expect_exit(65, evaluate + "--set 'model.hidden=[32, 16]'", {"fc2.weight"});
  folder.add("small/model.safetensors", whole.substr(0, whole.size() - 5));
  expect_exit(65, evaluate, {path});
  folder.add("small/model.safetensors", "");
  expect_exit(65, evaluate, {"shorter than"});
  std::filesystem::remove(path);
  expect_exit(66, evaluate, {path});
  expect_exit(66, "evaluate '" + folder.file("nothing") + "'", {"nothing"});
}

TEST(CliRun, AReportThatCannotBePrintedIsAnErrorButLosesNothing) {
  const TempFolder folder;
  expect_exit(74, small_run(folder), {"standard output"}, "", Stream::FullDisk);
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/summary.json")));
}

}  // namespace
