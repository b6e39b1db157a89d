// A batch file for Slurm that runs a sweep as an array of jobs, a point each.
#pragma once

#include <string>
#include <vector>

#include "sweep/point_runs.h"

namespace abtrain::sweep {

struct SlurmArray {
  std::string name;     // of the sweep
  std::string program;  // abtrain, as an absolute path
  std::string root;     // holds slurm/job.sh
  std::string folder;   // where it was asked for: relative paths start there
  std::vector<std::string>
      arguments;            // that name the sweep: what follows `sweep`
  std::size_t at_once = 0;  // points at a time; 0: as many as Slurm starts
};

// A task of Slurm is a worker where all points have the same number of workers;
// else a point is one task, its workers threads. Error(Usage) where a control
// character would come into the script.
std::string slurm_script(
    const SlurmArray& array,
    const std::vector<PointRun>& runs);

// The folder with slurm/job.sh that belongs to a program: $ABTRAIN_ROOT, the
// source tree of one in SOURCE/build/PRESET, PREFIX/share/abtrain of one in
// PREFIX/bin. Error(MissingInput) where there is none.
std::string slurm_root(const std::string& program);

}  // namespace abtrain::sweep
