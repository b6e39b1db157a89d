// Trains one run in this process, which may be one of a launcher's processes, or the points of a
// sweep, each in a process of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "comm/launch.h"
#include "commands.h"
#include "config/run_options.h"
#include "sweep/resolve_points.h"
#include "train/session.h"

namespace abtrain::app {

// Returns the configuration to train. Receives the number of processes that a launcher started (0:
// none), and a log for its messages.
using ReadOptions = std::function<config::RunOptions(std::int64_t launched, Log& log)>;

// Trains the configuration that `read` returns, and prints the report. Returns the exit code; in a
// launcher's process, does not return. `session`: everything but the host, the watch and the hooks.
// `after`: called by the process of worker 0 when a run has finished.
int train_here(
    train::SessionOptions session, const ReadOptions& read,
    const std::function<void()>& after = [] {});

// Trains all points of a sweep file, one at a time, and prints the report, as
// `abtrain sweep FILE` does. Returns the exit code.
int train_sweep(const std::string& file);

// Reads and checks all points, so that every problem is reported before the first point is trained.
// `here`: the points are trained on this machine.
std::vector<sweep::PointRun> checked_runs(const sweep::Sweep& sweep, bool here);

// Logs the notes; a note that several points share is logged once.
void log_notes(const std::vector<sweep::PointRun>& runs, Log& log);

// Trains the runs that have not finished, `jobs` at the same time, prints the report on all runs,
// and returns the exit code.
int train_runs(const std::vector<sweep::PointRun>& runs, std::size_t jobs, Log& log);
// Does the same as train_runs() for each round of a sweep with halving, but reports on the last
// round only.
int train_rounds(const sweep::Sweep& sweep, std::size_t jobs, Log& log);

// Prints the report of train_runs() if no point is left to train. `of_rivals`: the sweep is the
// last round of a sweep with halving. An error of the report is only a warning.
void report_if_complete(const sweep::Sweep& sweep, bool of_rivals, Log& log);

}  // namespace abtrain::app
