// Training the points of a sweep here, and the report on them.
#pragma once

#include <cstddef>
#include <vector>

#include "base/log.h"
#include "sweep/resolve_points.h"

namespace abtrain::app {

// Reads and checks all points, so that every problem is reported before the
// first point is trained. `here`: they are trained on this machine.
std::vector<sweep::PointRun> checked_runs(const sweep::Sweep& sweep, bool here);

// A note that several points share is given once.
void log_notes(const std::vector<sweep::PointRun>& runs, Log& log);

// Both train what has not finished, with so many jobs at a time, print the
// report on all, and return the exit code.
int train_runs(const std::vector<sweep::PointRun>& runs, std::size_t jobs, Log& log);
// All rounds of a sweep with halving; the report is that of the last.
int train_rounds(const sweep::Sweep& sweep, std::size_t jobs, Log& log);

}  // namespace abtrain::app
