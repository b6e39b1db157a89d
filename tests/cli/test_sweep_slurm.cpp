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

namespace {

using namespace abtrain;

TEST_F(CliSweep, WritesABatchFileThatAsksForThePoints) {
  add_sweep("grid: {method.rank.rank: [1, 2, 3]}\n");
  // In place of the real one: what it would run.
  folder_.add(
      "root/slurm/job.sh",
      "fail() { echo \"$2\"; exit \"$1\"; }\n"
      "run_abtrain() { printf '%s\\n' \"$@\"; }\n");
  setenv("ABTRAIN_ROOT", folder_.file("root").c_str(), 1);
  const std::string set = "data.root=it's \"$HOME\"";
  const Outcome written =
      run(arguments(
              "--jobs 2 --set \"data.root=it's \\\"\\$HOME\\\"\" --seeds 2 "
              "--emit-slurm '" +
              folder_.file("array.sh") + "'"),
          Stream::Error);
  ASSERT_EQ(written.exit_code, 0) << written.text;
  EXPECT_TRUE(contains(written.text, "array.sh: 6 points")) << written.text;
  const std::string text = content(folder_.file("array.sh"));
  for (const char* line :
       {"\n#SBATCH --array=0-5%2\n", "\n#SBATCH --ntasks=2\n", "\n#SBATCH --cpus-per-task=1\n",
        "\n#SBATCH --job-name=toy\n", "\n#SBATCH --signal=USR1@120\n"}) {
    EXPECT_TRUE(contains(text, line)) << line << text;
  }
  std::system(("SLURM_ARRAY_TASK_ID=4 bash '" + folder_.file("array.sh") + "' >'" +
               folder_.file("ran") + "' 2>&1; bash '" + folder_.file("array.sh") + "' >>'" +
               folder_.file("ran") + "' 2>&1; echo $? >>'" + folder_.file("ran") + "'")
                  .c_str());
  EXPECT_EQ(
      content(folder_.file("ran")), "sweep\n" + folder_.file("toy.yaml") + "\n--set\n" + set +
                                        "\n--seeds\n2\n--output\n" + folder_.file("runs") +
                                        "\n--task\n4\nno array task: sbatch --array=0-5\n2\n");

  // Where points differ in their workers, threads of one task are the workers.
  add_sweep("grid: {workers: [2, 6]}\n");
  const Outcome mixed = run(arguments("--emit-slurm"), Stream::Out);
  EXPECT_EQ(mixed.exit_code, 0);
  EXPECT_TRUE(contains(mixed.text, "\n#SBATCH --ntasks=1\n")) << mixed.text;
  EXPECT_TRUE(contains(mixed.text, "\n#SBATCH --cpus-per-task=6\n"));
  EXPECT_TRUE(contains(mixed.text, "2 to 6 workers"));
  EXPECT_TRUE(contains(mixed.text, "\n#SBATCH --array=0-1\n"));
  setenv("ABTRAIN_ROOT", folder_.file("nothing").c_str(), 1);
  const Outcome without = run(arguments("--emit-slurm"), Stream::Error);
  unsetenv("ABTRAIN_ROOT");
  EXPECT_EQ(without.exit_code, 66);
  EXPECT_TRUE(contains(without.text, "ABTRAIN_ROOT")) << without.text;
}

// Names that would become lines of the batch file.
TEST_F(CliSweep, BatchFilesHoldNoLinesOfTheUsers) {
  const std::string sweep = "base: base\ngrid: {method.rank.rank: [1, 2]}\n";
  const std::string evil = "x\ntouch owned\n";
  folder_.add(evil + ".yaml", sweep);
  Outcome outcome = run("sweep '" + folder_.file(evil) + ".yaml' --emit-slurm", Stream::Out);
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_EQ(outcome.text, "");
  outcome = run("sweep '" + folder_.file(evil) + ".yaml' --name good --emit-slurm", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "control characters are not allowed in")) << outcome.text;
  // The default name of a sweep that only lists is one too.
  outcome = run("sweep '" + folder_.file(evil) + ".yaml' --list", Stream::Error);
  EXPECT_EQ(outcome.exit_code, 78) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "control characters"));
  EXPECT_TRUE(contains(outcome.text, "name")) << outcome.text;
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  outcome = run(arguments("--set \"data.root=a\nb\" --emit-slurm"), Stream::Error);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "got 'data.root=a\\nb'")) << outcome.text;
  // A folder that the batch file would change to.
  const std::string place = folder_.file("in\nside");
  fs::create_directories(place);
  outcome = run(arguments("--emit-slurm"), Stream::Error, "cd '" + place + "' && ");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.text;
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
  const int status =
      std::system((in_place + " \"$(readlink '" + folder_.file("place") + "')\"").c_str());
  EXPECT_EQ(status, 0) << content(place + "/errors");
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
  EXPECT_TRUE(contains(text, "\n" + slurm + "\"\n")) << text;
  EXPECT_TRUE(contains(text, "\n#SBATCH --job-name=\"toy_#1\"\n")) << text;
}

TEST_F(CliSweep, ATaskOfAnArrayIsThatPoint) {
  add_sweep("grid: {method.rank.rank: [1, 2]}\n");
  setenv("SLURM_ARRAY_TASK_ID", "1", 1);
  const Outcome task = run(arguments(), Stream::Out);
  setenv("SLURM_ARRAY_TASK_ID", "one", 1);
  const Outcome wrong = run(arguments(), Stream::Error);
  unsetenv("SLURM_ARRAY_TASK_ID");
  EXPECT_EQ(task.exit_code, 0);
  EXPECT_TRUE(contains(task.text, "rank=2")) << task.text;
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.text, "SLURM_ARRAY_TASK_ID")) << wrong.text;
  EXPECT_EQ(states(), (States{"missing", "finished"}));
}

}  // namespace
