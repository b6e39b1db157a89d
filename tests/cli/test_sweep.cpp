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
  const auto parsed = nlohmann::json::parse(output_of(arguments("--list --json")));
  ASSERT_EQ(parsed.size(), 2U);
  EXPECT_EQ(parsed[1]["index"], 1);
  EXPECT_EQ(parsed[1]["point"], rows[1][1]);
  EXPECT_EQ(parsed[1]["folder"], rows[1][2]);
  EXPECT_EQ(parsed[1]["state"], "missing");
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
}

TEST_F(CliSweep, TrainsAllOnceAndWhatIsMissingAgain) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\nseeds: [3, 4]\n");
  output_of(arguments("--task 2"));
  EXPECT_EQ(states(), (States{"missing", "missing", "finished", "missing"}));

  const std::string all = expect_exit(
      0, arguments("--jobs 3"),
      {"1 of 4 points are finished already", "[4/4] rank=", "rank=1,seed=3: "});
  EXPECT_LT(all.find(" s left\n"), all.find("[4/4]")) << all;
  EXPECT_FALSE(contains(all, "rank=2,seed=3: ")) << all;
  EXPECT_EQ(states(), States(4, "finished"));

  // Trained by a task and here, by one process and another: the same bits.
  const auto rows = list();
  const std::string model = content(rows[2][2] + "/model.safetensors");
  EXPECT_FALSE(model.empty());
  fs::remove_all(rows[2][2]);
  const auto before = times();
  expect_has(output_of(arguments()), "rank=1");  // the report
  EXPECT_TRUE(content(rows[2][2] + "/model.safetensors") == model);
  auto after = times();
  std::erase_if(after, [&](const auto& file) { return file.first.rfind(rows[2][2], 0) == 0; });
  EXPECT_EQ(after, before);
  EXPECT_GT(before.size(), 12U);

  // Without its model, which may be large, a run is still finished.
  fs::remove(rows[0][2] + "/model.safetensors");
  expect_exit(0, arguments("--task 0"), {"this run has finished"});
  EXPECT_FALSE(fs::exists(rows[0][2] + "/model.safetensors"));
}

TEST_F(CliSweep, OnePointThatFailsKeepsNoOtherFromItsTurn) {
  add_sweep(
      "set: {optimizer.name: sgd, train.clip_norm: 0}\n"
      "grid: {optimizer.lr: [1.0e30, 0.1]}\nseeds: 2\n");
  expect_exit(
      70, arguments(),
      {"[1/4] lr=1.0e+30,seed=1: failed after", "with exit code 70", "log.txt ends with\n    ",
       "optimizer.lr", "[3/4] lr=0.1,seed=1: ", "[4/4] lr=0.1,seed=2: "});
  EXPECT_EQ(states(), (States{"failed", "failed", "finished", "finished"}));
}

TEST_F(CliSweep, AllIsCheckedBeforeTheFirstIsTrained) {
  const std::string path = add_sweep("grid:\n  workers: [2, 4]\n  method.rank.rank: [2, 17]\n");
  expect_exit(
      78, arguments(),
      {path + ": error: method.rank.rank: expected at most 16",
       "at 2 of 4 points: 1 (workers=2,rank=17), 3 ("});
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
  expect_exit(78, arguments("--emit-slurm"));
  // A key that is wrong with each of its values.
  EXPECT_EQ(
      expect_exit(78, "sweep -c '" + folder_.file("base.yaml") + "' --grid wrokers=1,2 --list"),
      "--grid wrokers=1,2: error: wrokers: unknown key, did you mean 'workers'?\n");

  // A folder that holds something else than its name says.
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  const std::string folder = list().at(1).at(2);
  folder_.add(
      folder.substr(folder_.path().size() + 1) + "/config.yaml", std::string(kBase) + "seed: 9\n");
  expect_exit(78, arguments(), {"not the configuration of this point"});
  expect_exit(78, arguments("--task 1"));
  EXPECT_EQ(states(), (States{"missing", "foreign"}));
}

// A branch records the step of the checkpoint that it starts from.
TEST_F(CliSweep, PointsThatBranchOffARunAreRecognized) {
  const std::string runs = folder_.file("runs");
  expect_exit(
      0, "train '" + folder_.file("base.yaml") + "' --output '" + runs +
             "' --name trunk checkpoint.every=4");
  add_sweep(
      "set: {branch_from: '" + runs +
      "/trunk', train.steps: 12}\n"
      "grid: {optimizer.lr: [0.001, 0.002]}\n");
  expect_exit(0, arguments());
  EXPECT_EQ(states(), (States{"finished", "finished"}));
  expect_exit(0, arguments(), {"2 of 2 points are finished already"});
  expect_exit(0, arguments("--task 0"), {"this run has finished"});
}

TEST_F(CliSweep, ASweepGoesOnWhereItsFolderWasMoved) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  expect_exit(0, arguments("--task 0"));
  const std::string folder = list().at(0).at(2);
  fs::remove(folder + "/summary.json");  // as if it had been stopped
  fs::rename(folder_.file("runs"), folder_.file("moved"));
  const std::string there = replaced(arguments(), folder_.file("runs"), folder_.file("moved"));
  expect_exit(0, there);
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
  EXPECT_TRUE(
      fs::exists(replaced(folder, folder_.file("runs"), folder_.file("moved")) + "/summary.json"));
}

// The exit code is that of the training, whatever becomes of the report.
TEST_F(CliSweep, AReportThatFailsHidesNoFailure) {
  add_sweep(
      "set: {optimizer.name: sgd, train.clip_norm: 0}\n"
      "grid: {optimizer.lr: [1.0e30, 0.1]}\n");
  expect_exit(70, arguments());
  expect_exit(70, arguments(), {}, "", Stream::FullDisk);
  EXPECT_EQ(states(), (States{"failed", "finished"}));
  // The run that failed has a row of its own.
  fs::remove(list().at(1).at(2) + "/metrics.jsonl");
  expect_exit(70, arguments(), {"it has no metrics.jsonl; skipped", "failed at step 1 of 8"});
}

class CliBadSweep : public CliSweep, public ::testing::WithParamInterface<BadUse> {};

TEST_P(CliBadSweep, EndsWithItsCodeAndSaysWhy) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  expect_refused(GetParam(), arguments(), "");
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
}

INSTANTIATE_TEST_SUITE_P(
    All, CliBadSweep,
    ::testing::Values(
        BadUse{"TaskBeyond", "--task 2", "expected 0 to 1, as the sweep has 2 points; got 2"},
        BadUse{"TaskBelow", "--task=-1", "got -1"},
        BadUse{"NoJobs", "--jobs 0", "--jobs: expected an integer from 1 to 65536"},
        BadUse{"TwoVerbs", "--task 1 --list", "expected one of them"},
        BadUse{"JobsOfATask", "--task 1 --jobs 2", "--jobs is for all"},
        BadUse{
            "PointsOfNoJob", "--points-per-job 2", "--sbatch and --launcher go with --emit-slurm"},
        BadUse{"NoPointsOfAJob", "--emit-slurm --points-per-job 0", "an integer from 1 to"},
        BadUse{"NoOptionOfSbatch", "--emit-slurm --sbatch gpu", "expected an option of sbatch"},
        BadUse{
            "ArrayOfTheUser", "--emit-slurm --sbatch=--array=1", "sbatch --array=... at the subm"},
        BadUse{"JsonOfNothing", "--json", "--json goes with --list"},
        BadUse{"FileAndConfig", "--config base", "got both"},
        BadUse{"FileAndGrid", "--grid workers=1", "--grid goes with"},
        BadUse{"WordForANumber", "--seeds many", "or their number", 78},
        BadUse{
            "VariedKey", "--set method.rank.rank=3",
            "--set method.rank.rank=3: error: method.rank.rank: the sweep varies this key", 78},
        BadUse{
            "NoPlaceForTheBatchFile", "--emit-slurm /nothing/there.sh", "/nothing/there.sh", 74}),
    kCaseName);

TEST_F(CliSweep, RivalsNameTheirCommandHoweverItWasSpelled) {
  const std::string base = folder_.file("base.yaml");
  const std::string command =
      "rivals '" + base + "' --only ddp --steps 100 --seeds 3 -o '" + folder_.file("rivals.yaml");
  for (const char* size : {"", " --size 3", " --size=3.0"}) {
    expect_exit(0, command + "'" + size);
    const std::string made = content(folder_.file("rivals.yaml"));
    EXPECT_EQ(
        made.substr(0, made.find('\n')), "# Made by: abtrain rivals " + base + " --steps 100" +
                                             (*size == 0 ? "" : " --size 3") +
                                             " --only ddp --tune 4 --seeds 3");
  }
}

TEST_F(CliSweep, RivalsReplaceNoFileThatHasBeenEdited) {
  const std::string file = folder_.file("rivals.yaml");
  const std::string command = "rivals '" + folder_.file("base.yaml") +
                              "' --only ddp --tune 1 --seeds 1 -o '" + file + "' --output '" +
                              folder_.file("runs") + "' --steps ";
  expect_exit(0, command + "100");
  expect_exit(0, command + "40");  // it is as it was written
  const std::string written = content(file);
  for (const std::string& edited :
       {written + "# mine\n", replaced(written, "seeds: 1", "seeds: 2"),
        written.substr(0, written.rfind("# As written"))}) {
    folder_.add("rivals.yaml", edited);
    expect_exit(
        2, command + "60", {"rivals.yaml' has been edited since", "with -o, or", "--force"});
    EXPECT_EQ(content(file), edited);
  }
  // The same command trains what the user has made of it.
  folder_.add("rivals.yaml", replaced(written, "train.steps: 40", "train.steps: 20"));
  expect_exit(0, command + "40 --run", {"written by this command before and edited since"});
  expect_exit(0, "report '" + folder_.file("runs") + "' --where train.steps=20");
  expect_exit(0, command + "60 --force");
  EXPECT_FALSE(contains(content(file), "train.steps: 20"));
}

// The sizes of small networks, and measured lengths, are those of the configuration as it was.
TEST_F(CliSweep, RivalsOfAConfigurationThatHasChangedAreListedAnew) {
  const std::string base = folder_.file("base.yaml");
  const std::string file = folder_.file("rivals.yaml");
  const std::string command = "rivals '" + base +
                              "' --only ddp --tune 1 --seeds 1 --steps 20 --run -o '" + file +
                              "' --output '" + folder_.file("runs") + "'";
  expect_exit(0, command);
  expect_exit(0, command, {"written by this command before; it is continued"});
  folder_.add("base.yaml", replaced(content(base), "hidden: [", "hidden: [9, "));
  expect_exit(0, command, {"rivals.yaml: the configuration has changed since"});
  folder_.add("rivals.yaml", content(file) + "# mine\n");
  folder_.add("base.yaml", replaced(content(base), "hidden: [9", "hidden: [7"));
  expect_exit(2, command, {"has been edited since", "and the configuration has changed; name"});
}

TEST_F(CliSweep, RivalsSayHowLongTheyTakeAndWhoIsBest) {
  const std::string command = "rivals '" + folder_.file("base.yaml") +
                              "' --only ddp,powersgd --seconds 1 --bandwidth 10Gbit --tune 1 "
                              "--seeds 1 --run -o '" +
                              folder_.file("rivals.yaml") + "' --output '" + folder_.file("runs") +
                              "'";
  const std::string log = expect_exit(
      0, command,
      {"2 rivals, 2 runs with their pilots: at most 2.0 s of training, because nothing waits for "
       "the link here, after short runs of about 0.5 s",
       "2 rivals, 2 runs with their pilots: the comparison takes about "});
  EXPECT_LT(log.find("at most 2.0 s"), log.find("ddp: "));
  EXPECT_LT(log.find("the comparison takes"), log.find("round 1 of 1"));
  // The runs are there; this is their report.
  const std::string report = output_of(command);
  EXPECT_TRUE(report.starts_with("Within 1 s of training (2 nodes, links of 10 Gbit/s each way, "))
      << report;
  // So does any later report on the folder, and the last job of an array.
  const std::string first = report.substr(0, report.find('\n') + 1);
  EXPECT_TRUE(output_of("report '" + folder_.file("runs") + "'").starts_with(first)) << first;
  const std::string task = "sweep '" + folder_.file("rivals.yaml") + "' --output '" +
                           folder_.file("array") + "' --task ";
  EXPECT_FALSE(contains(output_of(task + "1"), "Within 1 s"));
  expect_has(output_of(task + "0"), "\nWithin 1 s of training (2 nodes, links of 10 Gbit/s");
  EXPECT_FALSE(contains(output_of(task + "0"), "Within 1 s"));  // it had finished before
  expect_exit(
      0,
      replaced(
          replaced(command, "--seconds 1 ", "--steps 40 "), folder_.file("runs"),
          folder_.file("steps")) +
          " --force",
      {"2 rivals, 2 runs with their pilots: 80 steps in all"});
  EXPECT_TRUE(output_of("report '" + folder_.file("steps") + "'")
                  .starts_with("In 40 steps, among those that ran, "));
}

TEST_F(CliSweep, ARivalThatDivergesStandsLastWithTheReason) {
  const std::string runs = folder_.file("runs");
  const std::string command = "rivals '" + folder_.file("base.yaml") +
                              "' --only ddp,powersgd --steps 40 --tune 1 --seeds 2 -o '" +
                              folder_.file("rivals.yaml") + "' --output '" + runs + "'";
  expect_exit(0, command);
  const std::string written = content(folder_.file("rivals.yaml"));
  folder_.add(
      "rivals.yaml", replaced(
                         written, "reducer.name: powersgd",
                         "reducer.name: powersgd\n        optimizer.lr: 1e+30"));
  expect_exit(70, command + " --run", {"without a result, because of divergence: powersgd"});
  const std::string there = output_of("report '" + runs + "' --front");
  expect_has(there, "powersgd has no result: it diverged at step");
  expect_has(there, "with seeds 1 and 2.");
  expect_has(there, "powersgd diverged.\n");
  EXPECT_LT(there.find("\nddp "), there.find("\npowersgd ")) << there;
  // The sweep's own report says the same, also when it is called again.
  expect_exit(70, command + " --run");
  EXPECT_TRUE(contains(there, run(command + " --run", Stream::Out).text));
}

// In the short runs that were to tell its length; Muon has a rate of its own.
TEST_F(CliSweep, ARivalThatDivergesAtOnceHasNoResult) {
  const std::string base = folder_.add(
      "wild.yaml", replaced(kBase, "log_every: 1}", "log_every: 1, clip_norm: 0}") +
                       "optimizer: {name: sgd, lr: 1.0e30}\n");
  const std::string file = folder_.file("rivals.yaml");
  const std::string command = "rivals '" + base +
                              "' --only ddp,ddp_muon --seconds 0.5 --tune 1 --seeds 1 --run -o '" +
                              file + "' --output '" + folder_.file("runs") + "'";
  expect_exit(
      70, command,
      {"ddp is left out: diverged in its first steps, as configured",
       "without a result, because of divergence: ddp"});
  const std::string written = content(file);
  const std::string diverged =
      "    ddp: {kind: diverged, why: \"diverged in its first steps, as configured\"}\n";
  expect_has(written, diverged);
  // It is the kind that counts, not its words.
  folder_.add(
      "rivals.yaml",
      replaced(written, diverged, "    ddp: \"diverged in its first steps, as configured\"\n"));
  expect_exit(0, command);
}

TEST_F(CliSweep, RivalsPrintTheirLayersAndTrainNothing) {
  const std::string base = folder_.file("base.yaml");
  const std::string command = "rivals '" + base + "' --dry-run -o '" + folder_.file("dry.yaml") +
                              "' --output '" + folder_.file("runs") + "'";
  const std::string text = output_of(command + " model.hidden=[64,64]");
  expect_has(text, "\n  small_ddp ");
  expect_has(text, "; narrow: every layer narrower by the same factor\n");
  expect_has(text, "\nlayers (inputs to outputs, parameters)\n  layer  narrow");
  expect_has(text, "  --set model.width=0.");
  EXPECT_FALSE(fs::exists(folder_.file("dry.yaml")));
  EXPECT_FALSE(fs::exists(folder_.file("runs")));
  EXPECT_FALSE(contains(output_of(command + " --only ddp"), "layers ("));
  expect_exit(2, command + " --run --steps 5", {"--dry-run trains nothing; expected either it or"});
  expect_exit(2, command + " --small x.pt2", {"--small: expected an exported model (model.file)"});
}

TEST_F(CliSweep, RivalsOfARunAreThoseOfItsConfiguration) {
  expect_exit(
      2, "rivals '" + folder_.path() + "' --steps 100",
      {"configuration of a run is " + folder_.path() + "/config.yaml"});
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
  const Outcome outcome = run_shell(stopped + " 2>&1 >/dev/null");
  ASSERT_EQ(outcome.exit_code, 75) << outcome.text;
  expect_has(outcome.text, "running points save and stop");
  expect_has(outcome.text, "of 3 points finished; the same command");
  EXPECT_GT(std::ranges::count(states(), "started"), 0);
  // One that was stopped before its first step has nothing to go on from.
  std::vector<bool> saved;
  for (const auto& row : list()) {
    saved.push_back(row[3] == "started" && fs::exists(row[2] + "/checkpoints"));
  }
  EXPECT_GT(std::ranges::count(saved, true), 0);

  expect_exit(0, arguments("--jobs 2"));
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
  expect_has(second, "seed=1: another process is training it");
  expect_has(second, "\n75\n");
  EXPECT_FALSE(fs::exists(folder_.file("left")));
  EXPECT_EQ(states(), States(2, "started"));
}

}  // namespace
