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
  folder_.add(
      "root/slurm/job.sh",
      "fail() { echo \"$2\"; exit \"$1\"; }\n"
      "run_abtrain() { printf '%s\\n' \"$@\"; }\n");
  const abtrain::testing::WithVariables variables{{"ABTRAIN_ROOT", folder_.file("root")}};
  const std::string set = "data.root=it's \"$HOME\"";
  const std::string file = "'" + folder_.file("array.sh") + "'";
  expect_exit(
      0,
      arguments("--jobs 2 --set \"data.root=it's \\\"\\$HOME\\\"\" --seeds 2 --emit-slurm " + file),
      {"array.sh: 6 points"});
  const std::string text = content(folder_.file("array.sh"));
  for (const char* line :
       {"\n#SBATCH --array=0-5%2\n", "\n#SBATCH --ntasks=2\n", "\n#SBATCH --cpus-per-task=1\n",
        "\n#SBATCH --job-name=toy\n", "\n#SBATCH --signal=USR1@120\n"}) {
    expect_has(text, line);
  }
  EXPECT_EQ(
      run_shell("(SLURM_ARRAY_TASK_ID=4 bash " + file + "; bash " + file + "; echo $?) 2>&1").text,
      "sweep\n" + folder_.file("toy.yaml") + "\n--set\n" + set + "\n--seeds\n2\n--output\n" +
          folder_.file("runs") + "\n--task\n4\nno array task: sbatch --array=0-5\n2\n");

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
  folder_.add(
      odd + "/root/slurm/job.sh", "run_abtrain() { printf '%s\\n' \"$ABTRAIN\" \"$@\"; }\n");
  fs::copy(ABTRAIN_PROGRAM, place + "/abtrain");
  const std::string in_place = script(
      "cd \"$1\" && export ABTRAIN_ROOT=$PWD/root &&\n"
      "./abtrain sweep 'toy #1.yaml' --emit-slurm >array.sh 2>errors &&\n"
      "SLURM_ARRAY_TASK_ID=1 bash array.sh >ran 2>>errors");
  fs::create_symlink(place, folder_.file("place"));
  const Outcome done = run_shell(in_place + " \"$(readlink '" + folder_.file("place") + "')\"");
  EXPECT_EQ(done.exit_code, 0) << content(place + "/errors");
  EXPECT_EQ(
      content(place + "/ran"), place + "/abtrain\nsweep\n" + place + "/toy #1.yaml\n--task\n1\n");
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

TEST_F(CliSweep, ATaskOfAnArrayIsThatPoint) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  expect_has(output_of(arguments(), "SLURM_ARRAY_TASK_ID=1 "), "rank=2");
  expect_exit(2, arguments(), {"SLURM_ARRAY_TASK_ID"}, "SLURM_ARRAY_TASK_ID=one ");
  EXPECT_EQ(states(), (States{"missing", "finished"}));
}

}  // namespace
