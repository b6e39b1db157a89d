// The batch file of a sweep: its lines for Slurm, its quotes, its folder.
#include "sweep/slurm_script.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "error_of.h"
#include "temp_folder.h"
#include "with_variables.h"

namespace abtrain::sweep {
namespace {

namespace fs = std::filesystem;

std::vector<PointRun> runs_of(const std::vector<std::int64_t>& workers) {
  std::vector<PointRun> runs;
  for (const std::int64_t count : workers) {
    PointRun run;
    run.index = runs.size();
    run.options.workers = count;
    runs.push_back(run);
  }
  return runs;
}

const SlurmArray kArray{
    "ranks", "/opt/bin/abtrain", "/opt/share/abtrain", "/home/me", {"ranks.yaml", "--seeds", "3"},
    0};

// Whether the text has this very line.
bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_TRUE(has_line(text, line)) << line << "\n--- is not in\n" << text;
  }
}

TEST(SlurmScript, HasATaskPerWorkerWhereAllPointsHaveAsMany) {
  const std::string text = slurm_script(kArray, runs_of({4, 4, 4}));
  EXPECT_TRUE(text.starts_with("#!/usr/bin/env bash\n"));
  expect_lines(
      text, {"#SBATCH --job-name=ranks", "#SBATCH --array=0-2", "#SBATCH --ntasks=4",
             "#SBATCH --cpus-per-task=1", "##SBATCH --gpus-per-node=4", "#SBATCH --chdir=/home/me",
             "root=/opt/share/abtrain", "ABTRAIN=${ABTRAIN:-/opt/bin/abtrain}",
             "run_abtrain sweep ranks.yaml --seeds 3 --task "
             "\"$SLURM_ARRAY_TASK_ID\""});
}

TEST(SlurmScript, HasOneTaskOfThreadsWherePointsDiffer) {
  const std::string text = slurm_script(kArray, runs_of({4, 1, 6}));
  expect_lines(
      text, {"#SBATCH --ntasks=1", "#SBATCH --cpus-per-task=6", "##SBATCH --gpus-per-node=6",
             "#SBATCH --array=0-2"});
}

TEST(SlurmScript, LimitsThePointsAtATime) {
  SlurmArray array = kArray;
  array.at_once = 5;
  expect_lines(slurm_script(array, runs_of({2, 2})), {"#SBATCH --array=0-1%5"});
}

TEST(SlurmScript, QuotesForTheShellAndForSlurm) {
  SlurmArray array = kArray;
  array.name = "a b%c'd";
  array.folder = "/home/m e#1\"\\";
  array.root = "/it's";
  array.program = "/a;b";
  array.arguments = {"", "x y", "it's", "$(rm)", "a=1,2", "@points@"};
  expect_lines(
      slurm_script(array, runs_of({1})),
      {"#SBATCH --job-name=a_b_c_d", "#SBATCH --chdir=\"/home/m e#1\\\"\\\\\"", "root='/it'\\''s'",
       "ABTRAIN=${ABTRAIN:-'/a;b'}",
       "run_abtrain sweep '' 'x y' 'it'\\''s' '$(rm)' a=1,2 @points@ --task "
       "\"$SLURM_ARRAY_TASK_ID\""});
}

TEST(SlurmScript, LeavesNoMarkOfItsTemplate) {
  const std::string text = slurm_script(kArray, runs_of({1, 2}));
  EXPECT_EQ(text.find('@', text.find("USR1@") + 5), std::string::npos) << text;
}

TEST(SlurmScript, RefusesControlCharacters) {
  const std::vector<std::string SlurmArray::*> texts = {
      &SlurmArray::name, &SlurmArray::program, &SlurmArray::root, &SlurmArray::folder};
  for (const auto member : texts) {
    SlurmArray array = kArray;
    array.*member = "x\nrm y";
    expect_error([&] { slurm_script(array, runs_of({1})); }, ErrorKind::Usage, {"'x\\nrm y'"});
  }
  SlurmArray array = kArray;
  array.arguments.push_back("\x1b[2J");
  expect_error([&] { slurm_script(array, runs_of({1})); }, ErrorKind::Usage);
}

class SlurmRoot : public ::testing::Test {
 protected:
  const TempFolder folder_;
  const abtrain::testing::WithVariables unset_{{"ABTRAIN_ROOT", {}}};
};

TEST_F(SlurmRoot, IsBesideTheProgramOrNamed) {
  const std::string installed = folder_ / "prefix/bin/abtrain";
  const std::string built = folder_ / "source/build/release/abtrain";
  expect_error([&] { slurm_root(installed); }, ErrorKind::MissingInput);
  folder_.add("prefix/share/abtrain/slurm/job.sh", "");
  folder_.add("source/slurm/job.sh", "");
  EXPECT_EQ(slurm_root(installed), folder_ / "prefix/share/abtrain");
  EXPECT_EQ(slurm_root(built), folder_ / "source");
  folder_.add("named/slurm/job.sh", "");
  ::setenv("ABTRAIN_ROOT", (folder_ / "prefix/../named").c_str(), 1);
  EXPECT_EQ(slurm_root(installed), folder_ / "named");
  // Then no other place is asked.
  ::setenv("ABTRAIN_ROOT", (folder_ / "nowhere").c_str(), 1);
  expect_error([&] { slurm_root(installed); }, ErrorKind::MissingInput, {folder_ / "nowhere"});
}

}  // namespace
}  // namespace abtrain::sweep
