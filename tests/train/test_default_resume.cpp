// Where --resume auto is the default.
#include <gtest/gtest.h>

#include "train/resume.h"
#include "with_variables.h"

namespace abtrain::train {
namespace {

// What Slurm 22.05 sets in each place.
TEST(DefaultResume, OnlyBatchJobsAndStepsOfSlurmResumeByThemselves) {
  using Values = testing::WithVariables::Values;
  const struct {
    const char* place;
    Values set;
    const char* expected;
  } kPlaces[] = {
      {"a login node", {}, "none"},
      {"sbatch", {{"SLURM_JOB_ID", "2"}, {"ENVIRONMENT", "BATCH"}, {"SLURM_PROCID", "0"}}, "auto"},
      {"sbatch by the shell of srun --pty",
       {{"SLURM_JOB_ID", "6"},
        {"ENVIRONMENT", "BATCH"},
        {"SLURM_PROCID", "0"},
        {"SLURM_PTY_PORT", "42903"}},
       "auto"},
      {"srun", {{"SLURM_JOB_ID", "3"}, {"SLURM_PROCID", "1"}}, "auto"},
      {"the shell of salloc", {{"SLURM_JOB_ID", "1"}}, "none"},
      {"srun --pty",
       {{"SLURM_JOB_ID", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_PTY_PORT", "39265"}},
       "none"},
      {"a batch job of Grid Engine", {{"ENVIRONMENT", "BATCH"}}, "none"}};
  for (const auto& [place, set, expected] : kPlaces) {
    Values all{
        {"SLURM_JOB_ID", {}}, {"SLURM_PROCID", {}}, {"SLURM_PTY_PORT", {}}, {"ENVIRONMENT", {}}};
    for (const auto& [name, value] : set) {
      all[name] = value;
    }
    const testing::WithVariables variables(all);
    EXPECT_EQ(default_resume(), expected) << place;
  }
}

}  // namespace
}  // namespace abtrain::train
