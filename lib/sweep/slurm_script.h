// Writes a Slurm batch file that runs a sweep as a job array, with one point per job or several one
// after another.
#pragma once

#include <string>
#include <vector>

#include "sweep/resolve_points.h"
#include "sweep/slurm_needs.h"
#include "sweep/slurm_options.h"

namespace abtrain::sweep {

// The most jobs in an array by default: Slurm's MaxArraySize is 1001, which clusters often keep.
inline constexpr std::size_t kManyJobs = 1000;

struct SlurmArray {
  std::string name;     // of the sweep
  std::string program;  // absolute path of abtrain
  std::string root;     // the folder that holds slurm/job.sh
  std::string folder;   // working folder: relative paths start there
  // The arguments after `sweep` that name this sweep.
  std::vector<std::string> arguments;
  SlurmOptions options = {};
  SlurmNeeds needs = {};
  // For a sweep with halving, the number of points in each round: one array per round, which starts
  // when the array before it has ended. Empty: one array.
  std::vector<std::size_t> rounds = {};

  std::size_t jobs_of(std::size_t points) const;
};

// If all points have the same number of workers, each Slurm task is a worker; otherwise each point
// is one task with threads as workers. Throws Error(Usage) if the script would contain a control
// character.
std::string slurm_script(const SlurmArray& array, const std::vector<PointRun>& runs);
// True if a file that begins with `begin` is such a script.
bool is_batch_file(const std::string& begin);

// The folder with slurm/job.sh that belongs to a program: $ABTRAIN_ROOT if that is set,
// PREFIX/share/abtrain for a program in PREFIX/bin, SOURCE for one in SOURCE/build/PRESET. Throws
// Error(MissingInput) if there is none.
std::string slurm_root(const std::string& program);

}  // namespace abtrain::sweep
