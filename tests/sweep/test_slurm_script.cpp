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
    .name = "ranks",
    .program = "/opt/bin/abtrain",
    .root = "/opt/share/abtrain",
    .folder = "/home/me",
    .arguments = {"ranks.yaml", "--seeds", "3"}};

// Whether the text has this very line.
bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_TRUE(has_line(text, line)) << line << "\n--- is not in\n" << text;
  }
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(SlurmScript, HasATaskPerWorkerWhereAllPointsHaveAsMany) {
  const std::string text = slurm_script(kArray, runs_of({4, 4, 4}));
  EXPECT_TRUE(text.starts_with("#!/usr/bin/env bash\n"));
  EXPECT_TRUE(is_batch_file(text));
  expect_lines(
      text, {"#SBATCH --job-name=ranks", "#SBATCH --array=0-2", "#SBATCH --ntasks=4",
             "#SBATCH --cpus-per-task=1", "#SBATCH --chdir=/home/me", "#SBATCH --requeue",
             "root=/opt/share/abtrain", "ABTRAIN=${ABTRAIN:-/opt/bin/abtrain}", "points=(3)",
             "run_points 1 \"${points[0]}\" sweep ranks.yaml --seeds 3"});
  // Nothing was asked for and nothing is known.
  for (const char* option : {"--gpus-per-node", "--mem", "--time", "#   --"}) {
    EXPECT_EQ(text.find(option), std::string::npos) << option;
  }
}

TEST(SlurmScript, HasOneTaskOfThreadsWherePointsDiffer) {
  SlurmArray array = kArray;
  array.needs.gpus = true;
  const std::string text = slurm_script(array, runs_of({4, 1, 6}));
  expect_lines(
      text, {"#SBATCH --ntasks=1", "#SBATCH --cpus-per-task=6", "#SBATCH --gpus-per-node=6",
             "#SBATCH --array=0-2"});
}

TEST(SlurmScript, AsksForWhatThePointsNeed) {
  SlurmArray array = kArray;
  array.needs = {true, 125, "from two points", 9};
  const std::string text = slurm_script(array, runs_of({2, 2}));
  expect_lines(
      text, {"#SBATCH --gpus-per-node=2", "#SBATCH --time=2:05:00", "#SBATCH --mem=9G",
             "# The time limit is from two points."});
}

TEST(SlurmScript, LimitsTheJobsAtATimeAndDividesThePoints) {
  SlurmArray array = kArray;
  array.options.jobs = 5;
  expect_lines(slurm_script(array, runs_of({2, 2})), {"#SBATCH --array=0-1%5", "#   --jobs=5"});
  array.options.points_per_job = 3;
  const std::string text = slurm_script(array, runs_of({1, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(is_batch_file(text));
  expect_lines(
      text, {"#SBATCH --array=0-2%5", "points=(7)", "#   --points-per-job=3",
             "run_points 3 \"${points[0]}\" sweep ranks.yaml --seeds 3"});
  array.rounds = {7, 4, 3};
  expect_lines(
      slurm_script(array, runs_of({1, 1, 1, 1, 1, 1, 1})),
      {"points=(7 4 3)", "  for last in 2 1 0; do",
       "run_points 3 \"${points[round - 1]}\" sweep ranks.yaml --seeds 3 --round \"$round\""});
}

// What is given takes the place of what the file would say: no option is there twice, and none
// that contradicts another.
TEST(SlurmScript, TakesOptionsInPlaceOfItsOwn) {
  struct Case {
    const char* given;
    const char* line;
    const char* replaced;  // the beginning of the line that is no longer there
  };
  const std::vector<Case> cases{
      {"--time=1:00", "--time=1:00", "--time=0:15:00"},
      {"-t 30", "--time=30", "--time=0:15:00"},
      {"--mem-per-cpu=2G", "--mem-per-cpu=2G", "--mem=3G"},
      {"--mem 0", "--mem=0", "--mem=3G"},
      {"--gres=gpu:h100:4", "--gres=gpu:h100:4", "--gpus-per-node"},
      {"-G2", "--gpus=2", "--gpus-per-node"},
      {"--no-requeue", "--no-requeue", "--requeue"},
      {"-J  my sweep", "--job-name=\"my sweep\"", "--job-name=ranks"},
      {"--output=logs/%A_%a.out", "--output=logs/%A_%a.out", "--output=%x"},
      {"-D/tmp", "--chdir=/tmp", "--chdir=/home"},
      {"-p gpu", "--partition=gpu", nullptr},
      {"--exclusive", "--exclusive", nullptr},
      {"--gres=tmpdisk:10", "--gres=tmpdisk:10", nullptr},
      {"-w node[1-3]", "-w node[1-3]", nullptr},
      {"--comment=a \"b\" #1", "--comment=\"a \\\"b\\\" #1\"", nullptr}};
  SlurmArray array = kArray;
  array.needs = {true, 15, "measured", 3};
  for (const Case& one : cases) {
    array.options.sbatch = {read_batch_option(one.given)};
    const std::string text = slurm_script(array, runs_of({2, 2}));
    expect_lines(text, {std::string("#SBATCH ") + one.line});
    const int lines = count_of(text, "\n#SBATCH ");
    EXPECT_EQ(lines, one.replaced == nullptr ? 14 : 13) << one.given;
    if (one.replaced != nullptr) {
      EXPECT_EQ(text.find(std::string("\n#SBATCH ") + one.replaced), std::string::npos) << text;
    }
  }
  // Without a value, it only takes the other's place.
  array.options.sbatch = {read_batch_option("--mem="), read_batch_option("--partition=")};
  const std::string text = slurm_script(array, runs_of({2, 2}));
  EXPECT_EQ(text.find("#SBATCH --mem"), std::string::npos);
  EXPECT_EQ(text.find("#SBATCH --partition"), std::string::npos);
  expect_lines(text, {"#   --sbatch=--mem="});
  array.options.sbatch = {read_batch_option("--time=5")};
  EXPECT_EQ(slurm_script(array, runs_of({1})).find("The time limit"), std::string::npos);
}

TEST(SlurmScript, RefusesWhatIsNotOneOption) {
  for (const char* text : {"", "partition=gpu", "-", "--", "---x", "--=x", "a.sh"}) {
    expect_error([&] { read_batch_option(text); }, ErrorKind::Usage, {"expected an option of"});
  }
  expect_error(
      [&] { read_batch_option("--qos=high -p gpu"); }, ErrorKind::Usage,
      {"expected one option, got '--qos=high -p gpu'"});
  for (const char* text : {"--array=0-3", "-a 1"}) {
    expect_error([&] { read_batch_option(text); }, ErrorKind::Usage, {"--jobs K"});
  }
}

TEST(SlurmScript, StartsTheLauncherInPlaceOfTheProgram) {
  SlurmArray array = kArray;
  array.options.launcher = "apptainer run --nv 'my image.sif'";
  expect_lines(
      slurm_script(array, runs_of({1})),
      {"ABTRAIN=${ABTRAIN:-'apptainer run --nv '\\''my image.sif'\\'''}",
       "#   --launcher=apptainer run --nv 'my image.sif'"});
}

// Whatever a batch file says of its options, the next one begins with them.
TEST(SlurmScript, KeepsItsOptions) {
  SlurmArray array = kArray;
  array.options = {
      .jobs = 2,
      .points_per_job = 4,
      .launcher = "apptainer run 'a b=c'",
      .sbatch = {
          read_batch_option("--comment=two  'words'=\"x\""), read_batch_option("-w node1"),
          read_batch_option("--exclusive"), read_batch_option("--mem=4G")}};
  const std::string text = slurm_script(array, runs_of({1, 1}));
  const SlurmOptions kept = kept_options(text, "ranks", "a.sh");
  EXPECT_EQ(kept.lines(), array.options.lines());
  EXPECT_EQ(kept.lines().size(), 7U);
  // Another sweep's, or what is no batch file.
  EXPECT_TRUE(kept_options(text, "rank", "a.sh").lines().empty());
  EXPECT_TRUE(kept_options("#   --jobs=2\n", "ranks", "a.sh").lines().empty());
  EXPECT_TRUE(kept_options("", "ranks", "a.sh").lines().empty());

  // What is given anew takes the place of what was kept, by what it is about.
  const SlurmOptions all = completed(
      {.jobs = 3,
       .launcher = "x",
       .sbatch =
           {read_batch_option("--mem-per-cpu=1G"), read_batch_option("-t 5"),
            read_batch_option("-t 6")}},
      kept);
  EXPECT_EQ(
      all.lines(), (std::vector<std::string>{
                       "--jobs=3", "--points-per-job=4", "--launcher=x",
                       "--sbatch=--comment=two  'words'=\"x\"", "--sbatch=-w node1",
                       "--sbatch=--exclusive", "--sbatch=--mem-per-cpu=1G", "--sbatch=--time=6"}));
}

TEST(SlurmScript, RefusesKeptOptionsThatWereSpoiled) {
  const std::string text = slurm_script(kArray, runs_of({1}));
  const std::string end = "\n#SBATCH --job-name";
  for (const char* line :
       {"--jobs=0", "--points-per-job=x", "--sbatch=gpu", "--sbatch=", "--nothing=1", "--jobs",
        "--launcher="}) {
    const std::string spoiled = replaced(text, end, formatted("\n#   {}{}", line, end));
    expect_error([&] { kept_options(spoiled, "ranks", "a.sh"); }, ErrorKind::Usage, {"a.sh:7: "});
  }
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
       "run_points 1 \"${points[0]}\" sweep '' 'x y' 'it'\\''s' '$(rm)' a=1,2 @points@"});
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
  array = kArray;
  array.options.launcher = "x\nrm y";
  expect_error([&] { slurm_script(array, runs_of({1})); }, ErrorKind::Usage);
  array = kArray;
  array.options.sbatch = {read_batch_option("--comment=x\nrm y")};
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
