// abtrain sweep under Slurm: the batch file that it writes, and one task of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "program.h"
#include "small_run.h"
#include "sweep_runs.h"
#include "temp_folder.h"
#include "with_variables.h"

namespace {

using namespace abtrain;

TEST_F(CliSweep, WritesABatchFileThatAsksForThePoints) {
  add_sweep("grid: {method.rank.rank: [1, 2, 3]}\n");
  // In place of the real one: what it would run.
  folder_.add("root/slurm/job.sh", "run_points() { printf '%s\\n' \"$@\"; }\n");
  const abtrain::testing::WithVariables variables{{"ABTRAIN_ROOT", folder_.file("root")}};
  const std::string set = "data.root=it's \"$HOME\"";
  const std::string file = "'" + folder_.file("array.sh") + "'";
  expect_exit(
      0,
      arguments(
          "--jobs 2 --points-per-job 4 --sbatch --partition=gpu "
          "--set \"data.root=it's \\\"\\$HOME\\\"\" --seeds 2 --emit-slurm " +
          file),
      {"array.sh: 6 points in 2 jobs; submit it with sbatch", "measuring some steps of point 0",
       "time limit of a job: 10 min", "/slurm-hook.sh is sourced first if you write it"});
  const std::string text = content(folder_.file("array.sh"));
  for (const char* line :
       {"\n#SBATCH --array=0-1%2\n", "\n#SBATCH --ntasks=2\n", "\n#SBATCH --cpus-per-task=1\n",
        "\n#SBATCH --job-name=toy\n", "\n#SBATCH --signal=USR1@120\n", "\n#SBATCH --time=0:10:00\n",
        "\n#SBATCH --partition=gpu\n", "\n#SBATCH --mem="}) {
    expect_has(text, line);
  }
  EXPECT_EQ(
      run_shell("bash " + file).text, "4\n6\nsweep\n" + folder_.file("toy.yaml") + "\n--set\n" +
                                          set + "\n--seeds\n2\n--output\n" + folder_.file("runs") +
                                          "\n");

  // Where points differ in their workers, threads of one task are the workers.
  add_sweep("grid: {workers: [2, 6]}\n");
  const std::string mixed = output_of(arguments("--emit-slurm"));
  for (const char* part :
       {"\n#SBATCH --ntasks=1\n", "\n#SBATCH --cpus-per-task=6\n", "2 to 6 workers",
        "\n#SBATCH --array=0-1\n"}) {
    expect_has(mixed, part);
  }
  expect_exit(
      66, arguments("--emit-slurm"), {"ABTRAIN_ROOT"},
      "ABTRAIN_ROOT='" + folder_.file("nothing") + "' ");
}

// Names that would become lines of the batch file.
TEST_F(CliSweep, BatchFilesHoldNoLinesOfTheUsers) {
  const std::string sweep = "base: base\ngrid: {method.rank.rank: [1, 2]}\n";
  const std::string evil = "x\ntouch owned\n";
  folder_.add(evil + ".yaml", sweep);
  const std::string command = "sweep '" + folder_.file(evil) + ".yaml' ";
  EXPECT_EQ(expect_exit(78, command + "--emit-slurm", {}, "", Stream::Out), "");
  expect_exit(2, command + "--name good --emit-slurm", {"control characters are not allowed in"});
  // The default name of a sweep that only lists is one too.
  expect_exit(78, command + "--list", {"control characters", "name"});
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  expect_exit(2, arguments("--set \"data.root=a\nb\" --emit-slurm"), {"got 'data.root=a\\nb'"});
  // A folder that the batch file would change to.
  const std::string place = folder_.file("in\nside");
  fs::create_directories(place);
  expect_exit(2, arguments("--emit-slurm"), {}, "cd '" + place + "' && ");
}

// What is no control character is quoted, for the shell and for Slurm.
TEST_F(CliSweep, BatchFilesQuoteWhatTheyHold) {
  const std::string odd = "a b'c\"d$(touch owned)`touch owned`#e\\f}";
  const std::string place = folder_.file(odd);
  folder_.add(odd + "/toy #1.yaml", "base: base\nseeds: 2\n");
  fs::copy(folder_.file("base.yaml"), place + "/base.yaml");
  folder_.add(odd + "/root/slurm/job.sh", "run_points() { printf '%s\\n' \"$ABTRAIN\" \"$@\"; }\n");
  fs::copy(ABTRAIN_PROGRAM, place + "/abtrain");
  const std::string in_place = script(
      "cd \"$1\" && export ABTRAIN_ROOT=$PWD/root &&\n"
      "./abtrain sweep 'toy #1.yaml' --emit-slurm >array.sh 2>errors &&\n"
      "bash array.sh >ran 2>>errors");
  fs::create_symlink(place, folder_.file("place"));
  const Outcome done = run_shell(in_place + " \"$(readlink '" + folder_.file("place") + "')\"");
  EXPECT_EQ(done.exit_code, 0) << content(place + "/errors");
  EXPECT_EQ(content(place + "/ran"), place + "/abtrain\n1\n2\nsweep\n" + place + "/toy #1.yaml\n");
  EXPECT_FALSE(fs::exists(place + "/owned"));
  // As Slurm reads its lines: in double quotes, a backslash before some.
  std::string slurm = "#SBATCH --chdir=\"";
  for (const char c : place) {
    slurm += c == '"' || c == '\\' ? "\\" : "";
    slurm += c;
  }
  const std::string text = content(place + "/array.sh");
  expect_has(text, "\n" + slurm + "\"\n");
  expect_has(text, "\n#SBATCH --job-name=\"toy_#1\"\n");
}

// Options of the batch file stay, also where they were changed by hand, until others are given.
TEST_F(CliSweep, TheNextBatchFileKeepsTheOptionsOfTheLastOne) {
  add_sweep("grid: {method.rank.rank: [1, 2, 3]}\n");
  const std::string path = folder_.file("array.sh");
  const std::string emit = "--emit-slurm '" + path + "' ";
  const std::string there = "cd '" + folder_.file("") + "' && ";
  expect_exit(
      0,
      arguments(
          emit + "--points-per-job 2 --sbatch '-p gpu' --sbatch=--time=5 "
                 "--sbatch '--comment=two words' --launcher 'apptainer run x.sif'"),
      {}, there);
  // The scripts lie in the working folder: the program's own may be those of an image.
  expect_has(content(path), "\nroot=" + folder_.file("abtrain-slurm") + "\n");
  for (const char* name : {"slurm/job.sh", "slurm/step.sh", "scripts/restart.sh"}) {
    EXPECT_EQ(
        content(folder_.file("abtrain-slurm/") + name),
        content(std::string(ABTRAIN_SOURCE_DIR "/") + name));
  }
  EXPECT_EQ(
      run_shell("test -x '" + folder_.file("abtrain-slurm/slurm/step.sh") + "'").exit_code, 0);

  const std::string changed = replaced(content(path), "#   --points-per-job=2\n", "#   --jobs=7\n");
  folder_.add("array.sh", replaced(changed, "#   --launcher=apptainer run x.sif\n", ""));
  folder_.add("slurm-hook.sh", "module load apptainer\n");
  expect_exit(
      0, arguments(emit + "--sbatch --time=6"),
      {"kept from the batch file before: --jobs=7  --sbatch=--partition=gpu  "
       "--sbatch=--comment=two words\n",
       "/slurm-hook.sh is sourced first\n"},
      there);
  const std::string text = content(path);
  for (const char* line :
       {"\n#SBATCH --array=0-2%7\n", "\n#SBATCH --partition=gpu\n", "\n#SBATCH --time=6\n",
        "\n#SBATCH --comment=\"two words\"\n", "\nroot=" ABTRAIN_SOURCE_DIR "\n"}) {
    expect_has(text, line);
  }
  EXPECT_FALSE(contains(text, "apptainer"));
  EXPECT_EQ(content(folder_.file("slurm-hook.sh")), "module load apptainer\n");

  // Another sweep begins anew.
  expect_exit(0, arguments(emit + "--name other --sbatch=--time=7"));
  EXPECT_FALSE(contains(content(path), "partition"));
  folder_.add("array.sh", replaced(content(path), "--sbatch=--time", "--sbatch=time"));
  expect_exit(2, arguments(emit + "--name other"), {"/array.sh:9: --sbatch: expected an option"});
}

TEST_F(CliSweep, WarnsOfArraysThatSlurmMayRefuse) {
  add_sweep("seeds: 1001\n");
  const std::string emit = "--sbatch=--time=5 --emit-slurm";
  expect_exit(
      0, arguments(emit), {"the array has 1001 jobs", "--points-per-job 2 makes at most 1000"});
  EXPECT_FALSE(contains(expect_exit(0, arguments("--points-per-job 2 " + emit)), "MaxArraySize"));
}

// The points of a job by slurm/job.sh, where `start` only tells and ends as it is told.
TEST_F(CliSweep, AJobTrainsItsPointsOneAfterTheOther) {
  folder_.add("slurm-hook.sh", "root=/nowhere; points=; echo hook $nothing\n");
  const std::string job = script("root='" ABTRAIN_SOURCE_DIR
                                 "' points=(7) ABTRAIN=true\n"
                                 "export SLURM_JOB_ID=1 SLURM_ARRAY_JOB_ID=1\n"
                                 "source \"$root/slurm/job.sh\" || exit 66\n"
                                 "codes=($CODES)\n"
                                 "start() { echo \"$*\"; code=${codes[${*: -1}]}; }\n"
                                 "requeue() { echo requeued; }\n"
                                 "run_points 3 \"${points[0]}\" sweep x.yaml\n");
  const auto outcome = [&](const std::string& task, const std::string& codes) {
    const Outcome done = run_shell(
        "cd '" + folder_.file("") + "' && CODES='" + codes + "' SLURM_ARRAY_TASK_ID=" + task + " " +
        job + " >said 2>&1; code=$?; grep -v sourcing said; exit $code");
    return replaced(done.text, "sweep x.yaml --task ", "") + std::to_string(done.exit_code);
  };
  EXPECT_EQ(outcome("0", "0 0 0 0 0 0 0"), "hook\n0\n1\n2\n0");
  EXPECT_EQ(outcome("2", "0 0 0 0 0 0 0"), "hook\n6\n0");
  EXPECT_EQ(outcome("1", "0 0 0 70 66 0 0"), "hook\n3\n4\n5\n70");
  EXPECT_EQ(outcome("1", "0 0 0 78 75 0 0"), "hook\n3\n4\nrequeued\n75");
  for (const char* task : {"3", "", "-1"}) {
    expect_has(
        outcome(task, "0 0 0 0 0 0 0"), "hook\nerror: no task of this array: sbatch --array=0-2");
  }
}

// ABTRAIN names a program or several words, of which nothing is expanded.
TEST_F(CliSweep, JobsReadTheWordsThatStartTheProgram) {
  folder_.add("a b", "#!/bin/sh\n");
  run_shell("chmod +x '" + folder_.file("a b") + "'");
  const std::string job = script("root='" ABTRAIN_SOURCE_DIR
                                 "' \n"
                                 "SLURM_JOB_ID=1\n"
                                 "source \"$root/slurm/job.sh\" || exit 66\n"
                                 "printf '<%s>' \"${program[@]}\"\n");
  const auto words = [&](const std::string& text) {
    return run_shell("cd '" + folder_.file("") + "' && ABTRAIN=" + text + " " + job + " 2>&1").text;
  };
  EXPECT_EQ(words("'./a b'"), "<./a b>");
  EXPECT_EQ(words("'env -n  \"a b\" $HOME $(rm) *'"), "<env><-n><a b><$HOME><$(rm)><*>");
  expect_has(words("'no/such program'"), "no program no/such program: build it, or set ABTRAIN");
  expect_has(words("\"env 'a\""), "ABTRAIN is not a command: env 'a\n");
}

TEST_F(CliSweep, ATaskOfAnArrayIsThatPoint) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  expect_has(output_of(arguments(), "SLURM_ARRAY_TASK_ID=1 "), "rank=2");
  expect_exit(2, arguments(), {"SLURM_ARRAY_TASK_ID"}, "SLURM_ARRAY_TASK_ID=one ");
  EXPECT_EQ(states(), (States{"missing", "finished"}));
}

// The array of a round has as many tasks as the round may need: here 3, of which the second round
// needs one, and the third, for settings that repeated others, none.
TEST_F(CliSweep, ATaskThatItsRoundDoesNotNeedSaysSo) {
  add_sweep(
      "halving:\n  settings: 4\n  rivals:\n    ddp:\n"
      "      set: {method.name: ddp, train.steps: 8}\n"
      "      tune: [{}, {optimizer.lr: 0.02}, {optimizer.lr: 0.03}, {optimizer.lr: 0.04}]\n");
  const auto expect_task = [&](int code, int round, int task, const std::string& said = "") {
    expect_exit(
        code, arguments(formatted("--round {}", round)), {said},
        formatted("SLURM_ARRAY_TASK_ID={} ", task));
  };
  for (const int task : {0, 1, 2}) {
    expect_task(0, 1, task);
  }
  expect_task(0, 2, 1, "this round needs no run 1\n");
  expect_task(0, 2, 2, "this round needs no run 2\n");
  EXPECT_FALSE(fs::exists(folder_.file("runs/toy/pilots/2")));
  expect_task(2, 2, 3, "--task: expected 0 to 0, as the sweep has 1 point; got 3");
  expect_task(0, 2, 0);
  EXPECT_TRUE(fs::exists(folder_.file("runs/toy/pilots/2")));
  expect_task(0, 3, 0, "this round needs no run 0\n");
}

}  // namespace
