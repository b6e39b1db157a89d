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
    const Outcome outcome = run(broken + resume, Stream::Error);
    EXPECT_EQ(outcome.exit_code, 70) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "layer 'fc")) << outcome.text;
    EXPECT_FALSE(contains(outcome.text, "linalg")) << outcome.text;
    const json failure = json::parse(content(folder.file("small/failure.json")));
    EXPECT_EQ(failure["exit_code"], 70);
    EXPECT_TRUE(contains(failure["message"], "layer 'fc")) << failure;
  }
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
  const Outcome outcome =
      run("--config fashion_mnist_mlp --name r --output '" + folder.path() +
              "' --set workers=2 --set method.name=ddp --set train.steps=4"
              " --set 'data={name: image-folder, batch_size: 1, root: " +
              folder.file("images") + ", image_size: 8, resize: 8}'",
          Stream::Error);
  EXPECT_EQ(outcome.exit_code, 65) << outcome.text;
  const json failure = json::parse(content(folder.file("r/failure.json")));
  EXPECT_EQ(failure["exit_code"], 65);
  EXPECT_TRUE(contains(failure["message"], "x\ufffd.jpg")) << failure;
  const Outcome report = run("report '" + folder.path() + "'", Stream::Error);
  EXPECT_TRUE(contains(report.text, "/r: failed at step 0")) << report.text;
}

// What was silently never done is said, before and at the start of the run.
TEST(CliRun, WarnsOfWhatNeverHappens) {
  const TempFolder folder;
  const std::string late = small_run(folder, "--set method.name=diloco --set method.sync_every=40");
  const std::string said =
      "method.sync_every: the first synchronization would be used after 42 "
      "steps, but the run has 8";
  const Outcome planned = run("plan " + late, Stream::Out);
  EXPECT_EQ(planned.exit_code, 0);
  EXPECT_TRUE(contains(planned.text, said)) << planned.text;
  const Outcome trained = run(late, Stream::Error);
  EXPECT_EQ(trained.exit_code, 0);
  EXPECT_TRUE(contains(trained.text, said)) << trained.text;
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
          "sweep --config fashion_mnist_mlp --seeds 2 --task " + number,
          "train --config fashion_mnist_mlp --rank 0 --processes " + number,
          "train --config fashion_mnist_mlp --processes 2 --rank " + number}) {
      const Outcome outcome = run(line, Stream::Error);
      EXPECT_EQ(outcome.exit_code, 2) << line << "\n" << outcome.text;
    }
  }
}

TEST(CliRun, AHalfSetLauncherIsNamed) {
  const TempFolder folder;
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  const Outcome outcome = run(small_run(folder), Stream::Error);
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(contains(outcome.text, "OMPI_COMM_WORLD_RANK")) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(folder.file("small")));
}

TEST(CliRun, AFullDiskIsNamed) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.file("small"));
  std::filesystem::create_symlink("/dev/full", folder.file("small/metrics.jsonl"));
  const Outcome outcome = run(small_run(folder), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "metrics.jsonl")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "No space left")) << outcome.text;
  // The run has gone on to its end.
  EXPECT_TRUE(contains(outcome.text, "step 8/8")) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("small/summary.json")));
}

// As a limit on the size of files sends a signal too.
TEST(CliRun, AFileThatMayNotGrowIsAFullDisk) {
  const TempFolder folder;
  const Outcome outcome =
      run(small_run(folder, "--set checkpoint.every=4"), Stream::Error, "ulimit -f 28; ");
  EXPECT_EQ(outcome.exit_code, 74) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "step 4: no checkpoint was saved")) << outcome.text;
  EXPECT_TRUE(contains(
      outcome.text,
      "abtrain: cannot write '" + folder.file("small/model.safetensors") + "': File too large"))
      << outcome.text;
}

// Training is worth more than the log that nobody reads any more.
TEST(CliRun, ATerminalThatGoesEndsNothing) {
  const TempFolder folder;
  run("train " + small_run(folder) + " 2>&1 | true; :", Stream::Out);
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/summary.json")));
}

// A finished run, changed by each case.
class CliEvaluate : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run(small_run(folder_), Stream::Out).exit_code, 0);
  }
  Outcome evaluate(const std::string& more = "") const {
    return run("evaluate '" + folder_.file("small") + "' " + more, Stream::Error);
  }
  const TempFolder folder_;
};

TEST_F(CliEvaluate, DamageAndChangesAreNamed) {
  const std::string path = folder_.file("small/model.safetensors");
  const std::string whole = content(path);

  Outcome outcome = evaluate("--set 'model.hidden=[32, 16]'");
  EXPECT_EQ(outcome.exit_code, 65) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "fc2.weight")) << outcome.text;

  folder_.add("small/model.safetensors", whole.substr(0, whole.size() - 5));
  outcome = evaluate();
  EXPECT_EQ(outcome.exit_code, 65) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, path)) << outcome.text;

  folder_.add("small/model.safetensors", "");
  outcome = evaluate();
  EXPECT_EQ(outcome.exit_code, 65) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "shorter than")) << outcome.text;

  std::filesystem::remove(path);
  outcome = evaluate();
  EXPECT_EQ(outcome.exit_code, 66) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, path)) << outcome.text;
}

TEST(CliRun, EvaluateOfNoRun) {
  const TempFolder folder;
  const Outcome outcome = run("evaluate '" + folder.file("nothing") + "'", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 66) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "nothing")) << outcome.text;
}

TEST(CliRun, AReportThatCannotBePrintedIsAnErrorButLosesNothing) {
  const TempFolder folder;
  const Outcome outcome = run(small_run(folder), Stream::FullDisk);
  EXPECT_EQ(outcome.exit_code, 74) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "standard output")) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(folder.file("small/summary.json")));
}

}  // namespace
