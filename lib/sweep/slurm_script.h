// Writes a Slurm batch file that runs a sweep as a job array, one point per
// job.
#pragma once

#include <string>
#include <vector>

#include "sweep/resolve_points.h"

namespace abtrain::sweep {

struct SlurmArray {
  std::string name;     // of the sweep
  std::string program;  // absolute path of abtrain
  std::string root;     // the folder that holds slurm/job.sh
  std::string folder;   // working folder: relative paths start there
  // The arguments after `sweep` that name this sweep.
  std::vector<std::string> arguments;
  std::size_t at_once = 0;  // points at a time; 0: no limit
  // Points in each round of a sweep with halving: an array per round, which
  // begins when that before it has ended. Empty: one array.
  std::vector<std::size_t> rounds = {};
};

// Each Slurm task is a worker where all points have the same number of workers;
// otherwise each point is one task whose workers are threads. Throws
// Error(Usage) where the script would contain a control character.
std::string slurm_script(const SlurmArray& array, const std::vector<PointRun>& runs);

// The folder with slurm/job.sh that belongs to a program: $ABTRAIN_ROOT if that
// is set, PREFIX/share/abtrain for a program in PREFIX/bin, SOURCE for one in
// SOURCE/build/PRESET. Throws Error(MissingInput) where there is none.
std::string slurm_root(const std::string& program);

}  // namespace abtrain::sweep
