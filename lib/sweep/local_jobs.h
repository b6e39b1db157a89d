// Trains the points of a sweep (its runs) on this machine, each in a process of its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/log.h"
#include "sweep/resolve_points.h"

namespace abtrain::sweep {

// The runs that remain to be trained after the listed points.
struct Later {
  double runs = 0;
  double lengths = 0;  // total length of these runs; a listed point counts as 1
};

// Trains the points that are not finished, `jobs` at a time, each with its share of the cores and
// its output in <run folder>/log.txt; resumes from checkpoints. `program` is the path of abtrain.
// Logs one line for each point that ends. If a point fails, the others still run. Returns 0, or the
// exit code of the failed point with the lowest index.
//
// After a signal (base/signals.h), which is passed on to the runs so that they save, throws
// Error(Stopped); the next call resumes. Throws Error(Config) before starting anything if a folder
// holds another configuration (PointState::Foreign).
//
// The estimate of the remaining time includes `later`. `may_diverge`: a point that has diverged
// counts as finished, with exit code 0 (for pilots).
int train_points(
    const std::vector<PointRun>& runs, std::size_t jobs, const std::string& program, Log& log,
    const Later& later = {}, bool may_diverge = false);

}  // namespace abtrain::sweep
