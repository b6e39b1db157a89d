// abtrain sweep: what it lists, refuses, trains, repeats and hands to Slurm.
// The points are small networks on a part of Fashion-MNIST.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "program.h"
#include "small_run.h"
#include "sweep_runs.h"
#include "temp_folder.h"

namespace {

using namespace abtrain;

TEST_F(CliSweep, ListsWhatItWillDo) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\nseeds: [3]\n");
  const auto rows = list();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1][0], "1");
  EXPECT_EQ(rows[1][1], "rank=2,seed=3");
  EXPECT_EQ(rows[1][2].rfind(folder_.file("runs/toy/rank=2,seed=3-"), 0), 0U) << rows[1][2];
  EXPECT_EQ(rows[1][3], "missing");
  const Outcome listed = run(arguments("--list --json"), Stream::Out);
  const auto parsed = nlohmann::json::parse(listed.text);
  ASSERT_EQ(parsed.size(), 2U);
  EXPECT_EQ(parsed[1]["index"], 1);
  EXPECT_EQ(parsed[1]["point"], rows[1][1]);
  EXPECT_EQ(parsed[1]["folder"], rows[1][2]);
  EXPECT_EQ(parsed[1]["state"], "missing");
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
}

TEST_F(CliSweep, TrainsAllOnceAndWhatIsMissingAgain) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\nseeds: [3, 4]\n");
  ASSERT_EQ(run(arguments("--task 2"), Stream::Out).exit_code, 0);
  EXPECT_EQ(states(), (States{"missing", "missing", "finished", "missing"}));

  const Outcome all = run(arguments("--jobs 3"), Stream::Error);
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_TRUE(contains(all.text, "1 of 4 points are finished already")) << all.text;
  EXPECT_TRUE(contains(all.text, "[4/4] rank=")) << all.text;
  const std::size_t left = all.text.find(" s left\n");
  EXPECT_LT(left, all.text.find("[4/4]")) << all.text;
  EXPECT_TRUE(contains(all.text, "rank=1,seed=3: ")) << all.text;
  EXPECT_FALSE(contains(all.text, "rank=2,seed=3: ")) << all.text;
  EXPECT_EQ(states(), States(4, "finished"));

  // Trained by a task and here, by one process and another: the same bits.
  const auto rows = list();
  const std::string model = content(rows[2][2] + "/model.safetensors");
  EXPECT_FALSE(model.empty());
  fs::remove_all(rows[2][2]);
  const auto before = times();
  const Outcome again = run(arguments(), Stream::Out);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_TRUE(contains(again.text, "rank=1")) << again.text;  // the report
  EXPECT_TRUE(content(rows[2][2] + "/model.safetensors") == model);
  auto after = times();
  std::erase_if(after, [&](const auto& file) { return file.first.rfind(rows[2][2], 0) == 0; });
  EXPECT_EQ(after, before);
  EXPECT_GT(before.size(), 12U);

  // Without its model, which may be large, a run is still finished.
  fs::remove(rows[0][2] + "/model.safetensors");
  const Outcome task = run(arguments("--task 0"), Stream::Error);
  EXPECT_EQ(task.exit_code, 0);
  EXPECT_TRUE(contains(task.text, "this run has finished")) << task.text;
  EXPECT_FALSE(fs::exists(rows[0][2] + "/model.safetensors"));
}

TEST_F(CliSweep, OnePointThatFailsKeepsNoOtherFromItsTurn) {
  add_sweep(
      "set: {optimizer.name: sgd, train.clip_norm: 0}\n"
      "grid: {optimizer.lr: [1.0e30, 0.1]}\nseeds: 2\n");
  const Outcome outcome = run(arguments(), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 70);
  for (const char* part :
       {"[1/4] lr=1.0e+30,seed=1: failed after", "with exit code 70", "log.txt ends with\n    ",
        "optimizer.lr", "[3/4] lr=0.1,seed=1: ", "[4/4] lr=0.1,seed=2: "}) {
    EXPECT_TRUE(contains(outcome.text, part)) << part << "\n" << outcome.text;
  }
  EXPECT_EQ(states(), (States{"failed", "failed", "finished", "finished"}));
}

TEST_F(CliSweep, AllIsCheckedBeforeTheFirstIsTrained) {
  const std::string path = add_sweep("grid:\n  workers: [2, 4]\n  method.rank.rank: [2, 17]\n");
  Outcome outcome = run(arguments(), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_TRUE(contains(outcome.text, path + ": error: method.rank.rank: expected at most 16"))
      << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "at 2 of 4 points: 1 (workers=2,rank=17), 3 ("))
      << outcome.text;
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
  outcome = run(arguments("--emit-slurm"), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
  // A key that is wrong with each of its values.
  outcome =
      run("sweep -c '" + folder_.file("base.yaml") + "' --grid wrokers=1,2 --list", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_EQ(
      outcome.text,
      "--grid wrokers=1,2: error: wrokers: unknown key, did you mean "
      "'workers'?\n");

  // A folder that holds something else than its name says.
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  const std::string folder = list().at(1).at(2);
  folder_.add(
      folder.substr(folder_.path().size() + 1) + "/config.yaml", std::string(kBase) + "seed: 9\n");
  outcome = run(arguments(), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "not the configuration of this point")) << outcome.text;
  EXPECT_EQ(run(arguments("--task 1"), Stream::Error).exit_code, 78);
  EXPECT_EQ(states(), (States{"missing", "foreign"}));
}

// The exit code is that of the training, whatever becomes of the report.
TEST_F(CliSweep, AReportThatFailsHidesNoFailure) {
  add_sweep(
      "set: {optimizer.name: sgd, train.clip_norm: 0}\n"
      "grid: {optimizer.lr: [1.0e30, 0.1]}\n");
  EXPECT_EQ(run(arguments(), Stream::Error).exit_code, 70);
  EXPECT_EQ(run(arguments(), Stream::FullDisk).exit_code, 70);
  EXPECT_EQ(states(), (States{"failed", "finished"}));
  fs::remove(list().at(1).at(2) + "/metrics.jsonl");
  const Outcome outcome = run(arguments(), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 70) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "no report: ")) << outcome.text;
}

struct BadSweep {
  const char* name;
  const char* more;
  int exit_code;
  const char* says;
};

class CliBadSweep : public CliSweep, public ::testing::WithParamInterface<BadSweep> {};

TEST_P(CliBadSweep, EndsWithItsCodeAndSaysWhy) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  const Outcome outcome = run(arguments(GetParam().more), Stream::Error);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, GetParam().says)) << outcome.text;
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadSweep,
    ::testing::Values(
        BadSweep{
            "TaskBeyond", "--task 2", 2,
            "expected 0 to 1, as the sweep "
            "has 2 points; got 2"},
        BadSweep{"TaskBelow", "--task=-1", 2, "got -1"},
        BadSweep{"NoJobs", "--jobs 0", 2, "--jobs: expected an integer from 1 to 65536"},
        BadSweep{"TwoVerbs", "--task 1 --list", 2, "expected one of them"},
        BadSweep{"JobsOfATask", "--task 1 --jobs 2", 2, "--jobs is for all"},
        BadSweep{"JsonOfNothing", "--json", 2, "--json goes with --list"},
        BadSweep{"FileAndConfig", "--config base", 2, "got both"},
        BadSweep{"FileAndGrid", "--grid workers=1", 2, "--grid goes with"},
        BadSweep{"WordForANumber", "--seeds many", 78, "or their number"},
        BadSweep{
            "VariedKey", "--set method.rank.rank=3", 78,
            "--set method.rank.rank=3: error: method.rank.rank: the sweep "
            "varies this key"},
        BadSweep{
            "NoPlaceForTheBatchFile", "--emit-slurm /nothing/there.sh", 74, "/nothing/there.sh"}),
    [](const auto& test) { return test.param.name; });

TEST_F(CliSweep, RivalsNameTheirCommandHoweverItWasSpelled) {
  const std::string base = folder_.file("base.yaml");
  const std::string command =
      "rivals '" + base + "' --only ddp --steps 100 --seeds 3 -o '" + folder_.file("rivals.yaml");
  for (const char* size : {"", " --size 3", " --size=3.0"}) {
    ASSERT_EQ(run(command + "'" + size, Stream::Error).exit_code, 0) << size;
    const std::string made = content(folder_.file("rivals.yaml"));
    EXPECT_EQ(
        made.substr(0, made.find('\n')), "# Made by: abtrain rivals " + base + " --steps 100" +
                                             (*size == 0 ? "" : " --size 3") +
                                             " --only ddp --tune 3 --seeds 3");
  }
}

TEST_F(CliSweep, RivalsOfARunAreThoseOfItsConfiguration) {
  const Outcome outcome = run("rivals '" + folder_.path() + "' --steps 100", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
  EXPECT_TRUE(
      contains(outcome.text, "configuration of a run is " + folder_.path() + "/config.yaml"))
      << outcome.text;
}

// Stopped in the middle: all save, nothing is left running, and the next call
// goes on from there.
TEST_F(CliSweep, AStoppedSweepGoesOn) {
  add_sweep("set: {train.steps: 1500, checkpoint.every: 300}\nseeds: 3\n");
  const std::string stopped = script(
      std::string("set -u\n'") + ABTRAIN_PROGRAM + "' " + arguments("--jobs 2") +
      " & sweep=$!\n"
      "for i in {1..3000}; do\n"
      "  grep -qs '\"checkpoint\"' '" +
      folder_.file("runs") +
      "'/toy/*/metrics.jsonl && break\n"
      "  sleep 0.01\n"
      "done\n"
      "kill -TERM $sweep\nwait $sweep\n");
  const int status =
      std::system((stopped + " 2>'" + folder_.file("errors") + "' >/dev/null").c_str());
  const std::string errors = content(folder_.file("errors"));
  ASSERT_EQ(WEXITSTATUS(status), 75) << errors;
  EXPECT_TRUE(contains(errors, "running points save and stop")) << errors;
  EXPECT_TRUE(contains(errors, "of 3 points finished; the same command")) << errors;
  EXPECT_GT(std::ranges::count(states(), "started"), 0);
  // One that was stopped before its first step has nothing to go on from.
  std::vector<bool> saved;
  for (const auto& row : list()) {
    saved.push_back(row[3] == "started" && fs::exists(row[2] + "/checkpoints"));
  }
  EXPECT_GT(std::ranges::count(saved, true), 0);

  const Outcome again = run(arguments("--jobs 2"), Stream::Error);
  EXPECT_EQ(again.exit_code, 0) << again.text;
  EXPECT_EQ(states(), States(3, "finished"));
  const auto rows = list();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(contains(content(rows[i][2] + "/metrics.jsonl"), "\"resume\""), saved[i])
        << rows[i][1];
  }
}

// The runs end with the sweep, even where it has no time to end them.
TEST_F(CliSweep, NoRunIsLeftBehind) {
  add_sweep("set: {train.steps: 1000000}\nseeds: 2\n");
  const std::string killed = script(
      std::string("'") + ABTRAIN_PROGRAM + "' " + arguments("--jobs 2") +
      " & sweep=$!\n"
      "cd '" +
      folder_.path() +
      "'\n"
      "for i in {1..3000}; do\n"
      "  (($(ls runs/toy/*/metrics.jsonl 2>/dev/null | wc -l) == 2)) && break\n"
      "  sleep 0.01\n"
      "done\n"
      // A second sweep leaves to the first what that has taken.
      "'" +
      ABTRAIN_PROGRAM + "' " + arguments("--jobs 2") +
      " 2>second; echo $? >>second\n"
      "kill -KILL $sweep; wait $sweep\n"
      "for log in runs/toy/*/log.txt; do\n"
      "  flock --wait 30 \"$log\" true || echo $log >>left\n"
      "done\n");
  std::system((killed + " >/dev/null 2>&1").c_str());
  const std::string second = content(folder_.file("second"));
  EXPECT_TRUE(contains(second, "seed=1: another process is training it")) << second;
  EXPECT_TRUE(contains(second, "\n75\n")) << second;
  EXPECT_FALSE(fs::exists(folder_.file("left")));
  EXPECT_EQ(states(), States(2, "started"));
}

}  // namespace
