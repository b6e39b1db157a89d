// What is in a run folder stays there until the user says that it may go.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "program.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;
namespace fs = std::filesystem;

constexpr const char* kToyRun =
    "name: toy\n"
    "data: {name: fashion-mnist, subset: 256, pool: 7, batch_size: 16}\n"
    "model: {name: mlp, hidden: [16, 16]}\n"
    "workers: 2\n"
    "device: cpu\n"
    "method: {name: ddp}\n"
    "train: {steps: 8, threads: 1, log_every: 1}\n"
    "checkpoint: {every: 4 steps}\n"
    "evaluate: {every: 0}\n";

class CliRunFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("SLURM_JOB_ID");
    folder_.add("base.yaml", kToyRun);
  }
  Outcome train(const std::string& more = "") const {
    return run(
        "--config '" + folder_.file("base.yaml") + "' --output '" + folder_.file("runs") + "' " +
            more,
        Stream::Error);
  }
  std::string path(const std::string& name = "") const {
    return folder_.file("runs/toy/" + name);
  }
  // All files of the run and what they hold.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> out;
    for (const auto& file : fs::recursive_directory_iterator(path())) {
      out[file.path().string()] = file.is_regular_file() ? content_of(file.path()) : "";
    }
    return out;
  }
  int steps() const {
    return nlohmann::json::parse(files().at(path("summary.json")))["steps"];
  }
  // Refused, with what it says, and nothing is changed.
  void refused(const std::string& more, const std::vector<std::string>& says) const {
    const auto before = files();
    const Outcome outcome = train(more);
    EXPECT_EQ(outcome.exit_code, 78) << more << "\n" << outcome.text;
    for (const std::string& part : says) {
      EXPECT_TRUE(contains(outcome.text, part)) << part << "\n" << outcome.text;
    }
    EXPECT_TRUE(contains(outcome.text, "--name")) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "--overwrite")) << outcome.text;
    EXPECT_TRUE(files() == before) << more;
  }
  static std::string content_of(const std::string& file) {
    std::stringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  void done(const std::string& more) const {
    const Outcome outcome = train(more);
    EXPECT_EQ(outcome.exit_code, 0) << more << "\n" << outcome.text;
  }

  const TempFolder folder_;
};

TEST_F(CliRunFolder, AFinishedRunStaysUnlessItMayGo) {
  done("");
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
    const Outcome outcome = train(again);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "this run has finished"));
  }
  EXPECT_TRUE(files() == before);
  // What is wrong with the new settings shows while the old run is still there.
  const Outcome wrong = train("--overwrite --set data.batch_size=500");
  EXPECT_EQ(wrong.exit_code, 78) << wrong.text;
  EXPECT_TRUE(files() == before);

  done(nine + "--overwrite");
  EXPECT_EQ(steps(), 9);
  EXPECT_TRUE(fs::exists(path("checkpoints.previous")));
  done("--set train.steps=10 --overwrite --resume auto");
  EXPECT_EQ(steps(), 10);
  EXPECT_FALSE(fs::exists(path("lock.json")));

  folder_.add("runs/toy/config.yaml", "not: [a configuration");
  refused("", {"config.yaml is missing or cannot be read"});
}

TEST_F(CliRunFolder, CommandsTakeItsCheckpoints) {
  done("--set checkpoint.keep=5");
  const auto before = files();
  const auto json_of = [&](const std::string& name) {
    const Outcome outcome =
        run("evaluate '" + folder_.file("runs/toy") + name + "' --json", Stream::Out);
    EXPECT_EQ(outcome.exit_code, 0) << name;
    return nlohmann::json::parse(outcome.text);
  };
  const auto own = json_of("");
  const auto last = json_of("@last");
  EXPECT_EQ(last["model"], folder_.file("runs/toy@last"));
  EXPECT_EQ(last["confusion"], own["confusion"]);  // data parallel: the model itself
  EXPECT_NE(json_of("@step-4")["confusion"], own["confusion"]);
  const std::string file = folder_.file("four.safetensors");
  const Outcome exported =
      run("export '" + folder_.file("runs/toy@step-4") + "' -o '" + file + "'", Stream::Out);
  EXPECT_EQ(exported.exit_code, 0);
  EXPECT_TRUE(contains(exported.text, "runs/toy@step-4 -> ")) << exported.text;
  EXPECT_TRUE(contains(content_of(file), "Ankle boot"));
  EXPECT_TRUE(files() == before);

  const auto expect_refused = [&](const std::string& name, int code, const std::string& part) {
    const Outcome outcome = run("evaluate '" + folder_.file("runs/toy") + name, Stream::Error);
    EXPECT_EQ(outcome.exit_code, code) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, part)) << outcome.text;
  };
  expect_refused("@5'", 66, "no checkpoint '5'; there are last, step-8, step-4");
  expect_refused("@last' --model model.safetensors", 2, "names a model already");
  expect_refused("s@last'", 66, "expected a run folder");
  fs::resize_file(path("checkpoints/step-0000000008/worker-00000.safetensors"), 99);
  expect_refused("@last'", 65, "worker-00000.safetensors: expected");
  // A folder may have such a name.
  fs::rename(folder_.file("runs/toy"), folder_.file("runs/toy@last"));
  EXPECT_EQ(json_of("@last")["confusion"], own["confusion"]);
}

TEST_F(CliRunFolder, AnUnfinishedRunStaysToo) {
  done("");
  fs::remove(path("summary.json"));
  fs::remove(path("model.safetensors"));
  fs::remove_all(path("checkpoints/step-0000000008"));
  const std::string other = "--set optimizer.lr=0.5 ";
  refused(
      "", {"holds an unfinished run with the same settings", "saved up to step 4",
           "--resume auto continues"});
  refused(other, {"holds an unfinished run with other settings", "optimizer.lr"});
  refused(other + "--resume auto", {"optimizer.lr"});
  done("--resume auto");
  EXPECT_TRUE(contains(files().at(path("metrics.jsonl")), "\"resume\""));

  // Without anything to go on from the same start is just the next try.
  for (const char* gone : {"summary.json", "model.safetensors", "checkpoints"}) {
    fs::remove_all(path(gone));
  }
  refused(other, {"holds an unfinished run with other settings"});
  done("--set checkpoint.every=0");
  fs::remove(path("summary.json"));
  done("--resume auto --set checkpoint.every=0");
}

// One of these is not what auto would be here.
TEST_F(CliRunFolder, AResumedRunKeepsItsPrecision) {
  for (const std::string precision : {"fp32", "bf16"}) {
    done("--overwrite --set train.precision=" + precision);
    fs::remove(path("summary.json"));
    fs::remove_all(path("checkpoints/step-0000000008"));
    done("--resume auto");
    EXPECT_TRUE(contains(files().at(path("config.yaml")), "precision: " + precision + "\n"));
  }
}

TEST_F(CliRunFolder, AnotherRunsCheckpointReplacesNothing) {
  done("");
  done("--name other");
  const std::string from = "--resume '" + folder_.file("runs/other") + "' ";
  refused(from, {"holds a finished run"});
  done(from + "--overwrite");
  const auto events = files().at(path("metrics.jsonl"));
  EXPECT_TRUE(contains(events, folder_.file("runs/other/checkpoints/step-0000000008"))) << events;
}

TEST_F(CliRunFolder, ResumeNeedsNoConfiguration) {
  done("");
  for (const char* gone : {"summary.json", "model.safetensors"}) {
    fs::remove(path(gone));
  }
  const std::string model = [&] {
    const Outcome outcome = run("--resume '" + path() + "'", Stream::Error);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return files().at(path("model.safetensors"));
  }();
  EXPECT_TRUE(contains(files().at(path("metrics.jsonl")), "\"resume\""));
  // A finished run is reported, from wherever it is called.
  const auto before = files();
  for (const char* name : {"runs/toy", "./runs/../runs/toy/"}) {
    const Outcome again = run(
        std::string("train --resume ") + name, Stream::Error, "cd '" + folder_.path() + "' && ");
    EXPECT_EQ(again.exit_code, 0) << again.text;
    EXPECT_TRUE(contains(again.text, "runs/toy: this run has finished")) << again.text;
  }
  EXPECT_TRUE(files() == before);
  // One of its checkpoints, for a run of another name.
  const std::string step = path("checkpoints/step-0000000004");
  const Outcome copy = run("--resume '" + step + "' --name copy", Stream::Error);
  EXPECT_EQ(copy.exit_code, 0) << copy.text;
  EXPECT_TRUE(fs::exists(folder_.file("runs/copy/model.safetensors")) && files() == before);

  const Outcome none = run("--resume '" + folder_.file("none") + "'", Stream::Error);
  EXPECT_EQ(none.exit_code, 66);
  EXPECT_TRUE(contains(none.text, "or the folder of a run")) << none.text;
}

TEST_F(CliRunFolder, ARunCanBeMadeLonger) {
  const std::string constant = "--set schedule.name=constant ";
  done(constant);
  done(constant + "--name long --set train.steps=12");
  const std::string longer = "--resume '" + path() + "' train.steps=";
  Outcome outcome = run(longer + "12", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(contains(
      outcome.text,
      "extended from 8 to 12 steps, as if it had been that long from the "
      "start"))
      << outcome.text;
  EXPECT_EQ(steps(), 12);
  std::stringstream whole;
  whole << std::ifstream(folder_.file("runs/long/model.safetensors"), std::ios::binary).rdbuf();
  EXPECT_TRUE(files().at(path("model.safetensors")) == whole.str());

  outcome = run(longer + "6", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "can be extended, not shortened")) << outcome.text;
  EXPECT_EQ(steps(), 12);

  // The rate of a run that falls to 0 begins anew, and it says so.
  done("--overwrite");
  outcome = run(longer + "12", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(contains(
      outcome.text,
      "from step 8 on the learning rate is that of the longer run: 0.00025 "
      "instead of 3.80602e-05"))
      << outcome.text;
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
  const std::string local = "--set method.name=local-sgd --set method.";
  for (const std::string& method :
       {std::string("--set method.name=ddp "), ab, local + "sync_every=3 "}) {
    done(rare + method + "--overwrite");
    done(rare + method + "--overwrite --name long --set train.steps=12");
    const Outcome outcome = run(longer, Stream::Error);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "step-0000000008")) << outcome.text;
    EXPECT_EQ(
        read_file(path("model.safetensors")),
        read_file(folder_.file("runs/long/model.safetensors")))
        << method;
  }
  // A synchronization that a run has no more use for at its end.
  done(rare + local + "sync_every=4 --overwrite");
  const auto before = files();
  const Outcome outcome = run(longer, Stream::Error);
  EXPECT_EQ(outcome.exit_code, 66) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "model.weights=" + path("model.safetensors"))) << outcome.text;
  EXPECT_TRUE(files() == before);
  done(
      "--name on --set model.weights='" + path("model.safetensors") +
      "' --set schedule.name=constant --set method.name=ddp");
}

TEST_F(CliRunFolder, PhasesThatAreSharesOfARunKeepItsLength) {
  const std::string ab =
      "--set method.name=ab --set 'method.warmup_steps=25 %' --set "
      "method.sync_every=4 --set method.full_rank_steps=1 --set "
      "'method.rank={rule: fixed, rank: 2}' ";
  done(ab);
  const auto before = files();
  const Outcome outcome = run("--resume '" + path() + "' train.steps=16", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "ab would have acted differently after step 2"))
      << outcome.text;
  EXPECT_TRUE(files() == before);
  // With what it advises, the run goes on.
  constexpr const char* kAdvice =
      "give its percentages of that run in steps instead: method.warmup_steps=2\n";
  ASSERT_TRUE(contains(outcome.text, kAdvice)) << outcome.text;
  const std::string longer = "--resume '" + path() + "' train.steps=16 method.warmup_steps=";
  const Outcome other = run(longer + "3", Stream::Error);
  EXPECT_EQ(other.exit_code, 78);
  EXPECT_TRUE(contains(other.text, "\n  method.warmup_steps: 25 % there, 3 steps now\n"))
      << other.text;
  EXPECT_TRUE(contains(other.text, "leave these keys as they are there")) << other.text;
  const Outcome taken = run(longer + "2", Stream::Error);
  EXPECT_EQ(taken.exit_code, 0) << taken.text;
  EXPECT_EQ(steps(), 16);
}

TEST_F(CliRunFolder, AFastDevRunLeavesNothing) {
  const std::string fast =
      "'" + folder_.file("base.yaml") + "' --output '" + folder_.file("runs") + "' --fast-dev-run ";
  const std::string ab =
      "method.name=ab method.warmup_steps=100 schedule.warmup_steps=100 "
      "'method.rank={rule: fixed, rank: 2}' ";
  const Outcome first = run(fast + ab, Stream::Out);
  EXPECT_EQ(first.exit_code, 0) << first.text;
  EXPECT_TRUE(contains(first.text, "2 workers, 2 steps")) << first.text;
  EXPECT_TRUE(contains(first.text, "accuracy")) << first.text;
  EXPECT_FALSE(fs::exists(folder_.file("runs")));

  // A run of the same name stays as it is, and so does one that fails.
  done("");
  const auto before = files();
  EXPECT_EQ(run(fast, Stream::Error).exit_code, 0);
  const Outcome fails =
      run(fast + "optimizer.name=sgd optimizer.lr=1e38 schedule.name=constant", Stream::Error);
  EXPECT_EQ(fails.exit_code, 70) << fails.text;
  EXPECT_TRUE(files() == before);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_.file("runs"))) {
    EXPECT_EQ(entry.path().filename(), "toy");
    ++entries;
  }
  EXPECT_EQ(entries, 1);
  EXPECT_EQ(run(fast + "--resume auto", Stream::Error).exit_code, 2);
}

TEST_F(CliRunFolder, AnOutputOfASweepThatCannotBeMadeIsNamed) {
  folder_.add("toy.yaml", "base: base\nseeds: 2\n");
  const std::string long_name(300, 'x');
  for (const std::string verb : {"", "--list", "--task 0", "--emit-slurm"}) {
    const std::string command = "sweep '" + folder_.file("toy.yaml") + "' " + verb + " --output ";
    const Outcome outcome = run(command + long_name, Stream::Error);
    EXPECT_EQ(outcome.exit_code, 74) << verb << outcome.text;
    EXPECT_TRUE(contains(outcome.text, "File name too long")) << outcome.text;
    EXPECT_FALSE(contains(outcome.text, "internal")) << outcome.text;
    const Outcome file = run(command + "/dev/null/runs", Stream::Error);
    EXPECT_EQ(file.exit_code, verb == "--list" ? 0 : 74) << verb << file.text;
    EXPECT_EQ(contains(file.text, "/dev/null"), verb != "--list") << file.text;
  }
}

}  // namespace
