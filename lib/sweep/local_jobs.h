// Runs the points of a sweep on this machine, each as a process of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/log.h"
#include "sweep/point_runs.h"

namespace abtrain::sweep {

// Trains what is not finished, `jobs` points at a time, each with its share of
// the cores and its output in <run folder>/log.txt; goes on from checkpoints.
// `program`: abtrain. A line to the log for each that ends. One that fails
// keeps no other from its turn: returns 0, or the exit code of the first of
// them.
//
// Error(Stopped) after a signal (base/signals.h), which is handed on to the
// runs: they save, and the next call goes on. Error(Config) before anything is
// started where a folder holds something else (point_state.h).
int train_points(
    const std::vector<PointRun>& runs,
    std::size_t jobs,
    const std::string& program,
    Log& log);

}  // namespace abtrain::sweep
