// What is in a run folder stays there until the user says that it may go.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "program.h"
#include "run_folder_test.h"
#include "small_run.h"
#include "temp_folder.h"
#include "with_variables.h"

namespace {

using namespace abtrain;
namespace fs = std::filesystem;

TEST_F(CliRunFolder, AFinishedRunStaysUnlessItMayGo) {
  train(0);
  refused(
      "", {folder_.file("runs/toy") + " holds a finished run with the same settings",
           "abtrain report " + folder_.file("runs/toy")});
  const std::string nine = "--set train.steps=9 ";
  const std::string differs = "train.steps: 8 there, 9 now";
  refused(nine, {"holds a finished run with other settings", differs});
  refused(nine + "--resume auto", {differs});
  refused("--resume '" + path() + "'", {"holds a finished run"});
  const auto before = files();
  for (const char* again : {"--resume auto", "--resume auto --overwrite"}) {
    train(0, again, {"this run has finished"});
  }
  EXPECT_TRUE(files() == before);
  // What is wrong with the new settings shows while the old run is still there.
  train(78, "--overwrite --set data.batch_size=500");
  EXPECT_TRUE(files() == before);

  train(0, nine + "--overwrite");
  EXPECT_EQ(steps(), 9);
  EXPECT_TRUE(fs::exists(path("checkpoints.previous")));
  train(0, "--set train.steps=10 --overwrite --resume auto");
  EXPECT_EQ(steps(), 10);
  EXPECT_FALSE(fs::exists(path("lock.json")));

  folder_.add("runs/toy/config.yaml", "not: [a configuration");
  refused("", {"config.yaml is missing or cannot be read"});
}

TEST_F(CliRunFolder, CommandsTakeItsCheckpoints) {
  train(0, "--set checkpoint.keep=5");
  const auto before = files();
  const std::string evaluate = "evaluate '" + folder_.file("runs/toy");
  const auto json_of = [&](const std::string& name) {
    return nlohmann::json::parse(output_of(evaluate + name + "' --json"));
  };
  const auto own = json_of("");
  const auto last = json_of("@last");
  EXPECT_EQ(last["model"], folder_.file("runs/toy@last"));
  EXPECT_EQ(last["confusion"], own["confusion"]);  // data parallel: the model itself
  EXPECT_NE(json_of("@step-4")["confusion"], own["confusion"]);
  const std::string file = folder_.file("four.safetensors");
  expect_has(
      output_of("export '" + folder_.file("runs/toy@step-4") + "' -o '" + file + "'"),
      "runs/toy@step-4 -> ");
  EXPECT_TRUE(contains(content(file), "Ankle boot"));
  EXPECT_TRUE(files() == before);

  expect_exit(66, evaluate + "@5'", {"no checkpoint '5'; there are last, step-8, step-4"});
  expect_exit(2, evaluate + "@last' --model model.safetensors", {"names a model already"});
  expect_exit(66, evaluate + "s@last'", {"expected a run folder"});
  fs::resize_file(path("checkpoints/step-0000000008/worker-00000.safetensors"), 99);
  expect_exit(65, evaluate + "@last'", {"worker-00000.safetensors: expected"});
  // A folder may have such a name.
  fs::rename(folder_.file("runs/toy"), folder_.file("runs/toy@last"));
  EXPECT_EQ(json_of("@last")["confusion"], own["confusion"]);
}

TEST_F(CliRunFolder, AnUnfinishedRunStaysToo) {
  train(0);
  fs::remove(path("summary.json"));
  fs::remove(path("model.safetensors"));
  fs::remove_all(path("checkpoints/step-0000000008"));
  const std::string other = "--set optimizer.lr=0.5 ";
  refused(
      "", {"holds an unfinished run with the same settings", "saved up to step 4",
           "--resume auto continues"});
  refused(other, {"holds an unfinished run with other settings", "optimizer.lr"});
  refused(other + "--resume auto", {"optimizer.lr"});
  train(0, "--resume auto");
  EXPECT_TRUE(contains(files().at(path("metrics.jsonl")), "\"resume\""));

  // Without anything to go on from the same start is just the next try.
  for (const char* gone : {"summary.json", "model.safetensors", "checkpoints"}) {
    fs::remove_all(path(gone));
  }
  refused(other, {"holds an unfinished run with other settings"});
  train(0, "--set checkpoint.every=0");
  fs::remove(path("summary.json"));
  train(0, "--resume auto --set checkpoint.every=0");
}

// One of these is not what auto would be here.
TEST_F(CliRunFolder, AResumedRunKeepsItsPrecision) {
  for (const std::string precision : {"fp32", "bf16"}) {
    train(0, "--overwrite --set train.precision=" + precision);
    fs::remove(path("summary.json"));
    fs::remove_all(path("checkpoints/step-0000000008"));
    train(0, "--resume auto");
    EXPECT_TRUE(contains(files().at(path("config.yaml")), "precision: " + precision + "\n"));
  }
}

TEST_F(CliRunFolder, AnotherRunsCheckpointReplacesNothing) {
  train(0);
  train(0, "--name other");
  const std::string from = "--resume '" + folder_.file("runs/other") + "' ";
  refused(from, {"holds a finished run"});
  train(0, from + "--overwrite");
  expect_has(
      files().at(path("metrics.jsonl")), folder_.file("runs/other/checkpoints/step-0000000008"));
}

TEST_F(CliRunFolder, ResumeNeedsNoConfiguration) {
  train(0);
  for (const char* gone : {"summary.json", "model.safetensors"}) {
    fs::remove(path(gone));
  }
  expect_exit(0, "--resume '" + path() + "'");
  EXPECT_TRUE(contains(files().at(path("metrics.jsonl")), "\"resume\""));
  // A finished run is reported, from wherever it is called.
  const auto before = files();
  for (const char* name : {"runs/toy", "./runs/../runs/toy/"}) {
    expect_exit(
        0, std::string("train --resume ") + name, {"runs/toy: this run has finished"},
        "cd '" + folder_.path() + "' && ");
  }
  expect_has(output_of("--resume '" + path() + "'"), "accuracy");
  EXPECT_TRUE(files() == before);
  // One of its checkpoints, for a run of another name.
  const std::string step = path("checkpoints/step-0000000004");
  expect_exit(0, "--resume '" + step + "' --name copy");
  EXPECT_TRUE(files() == before);
  const std::string events = content(folder_.file("runs/copy/metrics.jsonl"));
  EXPECT_EQ(nlohmann::json::parse(events.substr(0, events.find('\n')))["event"], "resume");
  EXPECT_TRUE(
      content(folder_.file("runs/copy/model.safetensors")) == before.at(path("model.safetensors")));

  expect_exit(66, "--resume '" + folder_.file("none") + "'", {"or the folder of a run"});
}

TEST_F(CliRunFolder, ARunCanBeMadeLonger) {
  const std::string constant = "--set schedule.name=constant ";
  train(0, constant);
  train(0, constant + "--name long --set train.steps=12");
  const std::string longer = "--resume '" + path() + "' train.steps=";
  expect_exit(
      0, longer + "12",
      {"extended from 8 to 12 steps, as if it had been that long from the start"});
  EXPECT_EQ(steps(), 12);
  EXPECT_TRUE(
      read_file(path("model.safetensors")) ==
      read_file(folder_.file("runs/long/model.safetensors")));

  expect_exit(78, longer + "6", {"can be extended, not shortened"});
  EXPECT_EQ(steps(), 12);

  // The rate of a run that falls to 0 begins anew, and it says so.
  train(0, "--overwrite");
  expect_exit(
      0, longer + "12",
      {"from step 8 on the learning rate is that of the longer run: 0.00025 "
       "instead of 3.80602e-05"});
  EXPECT_EQ(steps(), 12);
}

// The checkpoint of the end, which a run has where a longer one passes through
// it: the finished model stays until then.
TEST_F(CliRunFolder, AShortRunCanBeMadeLonger) {
  const std::string rare = "--set schedule.name=constant --set checkpoint.every=100 ";
  const std::string longer = "--resume '" + path() + "' train.steps=12";
  const std::string ab =
      "--set method.name=ab --set method.warmup_steps=2 --set "
      "method.sync_every=3 --set method.full_rank_steps=1 --set "
      "'method.rank={rule: fixed, rank: 2}' ";
  // Their synchronization after step 8 belongs to the longer run alone.
  const std::string both = ab +
                           "--set method.trains=both --set method.group_size=1 --set "
                           "method.full_rank_steps=0 --set method.moments=carry --set "
                           "'method.outer={name: nesterov, wire: {name: int2}}' ";
  const std::string local = "--set method.name=local-sgd --set method.";
  for (const std::string& method :
       {std::string("--set method.name=ddp "), ab, ab + "--set method.full_rank_steps=0 ", both,
        local + "sync_every=3 ", local + "sync_every=4 "}) {
    train(0, rare + method + "--overwrite");
    train(0, rare + method + "--overwrite --name long --set train.steps=12");
    expect_exit(0, longer, {"step-0000000008"});
    EXPECT_TRUE(
        read_file(path("model.safetensors")) ==
        read_file(folder_.file("runs/long/model.safetensors")))
        << method;
  }
  // A synchronization after step 7, whose result would come too late.
  train(0, rare + "--set 'method={name: diloco, sync_every: 7, delay: 1}' --overwrite");
  const auto before = files();
  expect_exit(66, longer, {"model.weights=" + path("model.safetensors")});
  EXPECT_TRUE(files() == before);
  train(
      0, "--name on --set model.weights='" + path("model.safetensors") +
             "' --set schedule.name=constant --set method.name=ddp");
}

TEST_F(CliRunFolder, PhasesThatAreSharesOfARunKeepItsLength) {
  const std::string ab =
      "--set method.name=ab --set 'method.warmup_steps=25 %' --set "
      "method.sync_every=4 --set method.full_rank_steps=1 --set "
      "'method.rank={rule: fixed, rank: 2}' ";
  train(0, ab);
  const auto before = files();
  const std::string longer = "--resume '" + path() + "' train.steps=16";
  expect_exit(
      78, longer,
      {"a run of 16 steps with ab differs from the continued run after step 2",
       "give them in steps instead: method.warmup_steps=2\n"});
  EXPECT_TRUE(files() == before);
  expect_exit(
      78, longer + " method.warmup_steps=3",
      {"\n  method.warmup_steps: 25 % there, 3 steps now\n", "leave these keys as they are there"});
  // With what it advises, the run goes on.
  expect_exit(0, longer + " method.warmup_steps=2");
  EXPECT_EQ(steps(), 16);
}

TEST_F(CliRunFolder, AStartThatCannotWriteIsRecorded) {
  for (const std::string file : {"config.yaml", "metrics.jsonl"}) {
    fs::remove_all(path());
    fs::create_directories(path(file + "/in the way"));
    const std::string said = train(74, "--overwrite", {"cannot write '" + path(file) + "'"});
    const auto failure = nlohmann::json::parse(content(path("failure.json")));
    EXPECT_EQ(failure["exit_code"], 74);
    expect_has(failure["message"], path(file));
    EXPECT_FALSE(fs::exists(path("lock.json")));
  }
}

TEST_F(CliRunFolder, AModelWithoutAPlaceIsKept) {
  fs::create_directories(path("model.safetensors/in the way"));
  fs::create_directories(folder_.file("temporary"));
  const abtrain::testing::WithVariables variables{{"TMPDIR", folder_.file("temporary")}};
  train(74, "--overwrite", {"The trained model is in " + folder_.file("temporary/abtrain-")});
  EXPECT_FALSE(fs::exists(path("summary.json")));
  EXPECT_EQ(nlohmann::json::parse(content(path("failure.json")))["exit_code"], 74);
  fs::path model;
  for (const auto& found : fs::recursive_directory_iterator(folder_.file("temporary"))) {
    model = found.path();
  }
  train(0, "--name other");
  EXPECT_TRUE(content(model) == content(folder_.file("runs/other/model.safetensors")));
}

TEST_F(CliRunFolder, AFastDevRunLeavesNothing) {
  const std::string fast =
      "'" + folder_.file("base.yaml") + "' --output '" + folder_.file("runs") + "' --fast-dev-run ";
  const std::string ab =
      "method.name=ab method.warmup_steps=100 schedule.warmup_steps=100 "
      "'method.rank={rule: fixed, rank: 2}' ";
  const std::string first = output_of(fast + ab);
  expect_has(first, "2 workers, 2 steps");
  expect_has(first, "accuracy");
  EXPECT_FALSE(fs::exists(folder_.file("runs")));

  // A run of the same name stays as it is, and so does one that fails.
  train(0);
  const auto before = files();
  expect_exit(0, fast);
  expect_exit(70, fast + "optimizer.name=sgd optimizer.lr=1e38 schedule.name=constant");
  EXPECT_TRUE(files() == before);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_.file("runs"))) {
    EXPECT_EQ(entry.path().filename(), "toy");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
  expect_exit(2, fast + "--resume auto");
  // It begins a run of its own, whatever the configuration branches off.
  expect_exit(0, fast + "'branch_from=" + folder_.file("runs/toy") + "' train.steps=20");
}

TEST_F(CliRunFolder, ALinkToARunIsNotItsName) {
  train(0);
  fs::create_directory_symlink("toy", folder_.file("runs/latest"));
  expect_exit(0, "--resume '" + folder_.file("runs/latest") + "' train.steps=12");
  EXPECT_EQ(nlohmann::json::parse(content(path("summary.json")))["name"], "toy");
}

TEST_F(CliRunFolder, AnOutputOfASweepThatCannotBeMadeIsNamed) {
  folder_.add("toy.yaml", "base: base\nseeds: 2\n");
  const std::string long_name(300, 'x');
  for (const std::string verb : {"", "--list", "--task 0", "--emit-slurm"}) {
    const std::string command = "sweep '" + folder_.file("toy.yaml") + "' " + verb + " --output ";
    expect_exit(74, command + long_name, {"File name too long"});
    const std::string said = expect_exit(verb == "--list" ? 0 : 74, command + "/dev/null/runs");
    EXPECT_EQ(contains(said, "/dev/null"), verb != "--list") << said;
  }
}

}  // namespace
