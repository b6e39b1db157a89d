// Trains the points of a sweep here, and reports on them.
#include <algorithm>
#include <exception>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "report_args.h"
#include "sweep/halving.h"
#include "sweep/local_jobs.h"
#include "sweep/point_state.h"
#include "training.h"

namespace abtrain::app {

namespace {

// Prints the table of the runs as `abtrain report` does. For rivals, prints the front and also
// writes it as an HTML page.
void print_report(const std::vector<sweep::PointRun>& runs, bool of_rivals, Log& log) {
  ReportArgs args;
  for (const sweep::PointRun& run : runs) {
    if (state_of(run) != sweep::PointState::Missing) {
      args.runs.push_back(run.folder);
    }
  }
  if (args.runs.empty()) {
    return;
  }
  args.front = of_rivals;
  run_report(args);
  if (of_rivals) {
    args.file = runs.front().options.output + "/report.html";
    run_report(args);
    log.info("the page of this report: {}", args.file);
  }
}

// Reports on runs after training has ended with exit code `code`, and returns `code`. If that code
// means failure, an error of the report is only a warning and does not hide the code.
int report(int code, const std::vector<sweep::PointRun>& runs, bool of_rivals, Log& log) {
  try {
    print_report(runs, of_rivals, log);
  } catch (const std::exception& error) {
    if (code == 0) {
      throw;
    }
    log.warning("no report: {}", error.what());
  }
  return code;
}

// Returns the exit code of a comparison after its full-length runs have ended: Diverged if a rival
// has no result, because all of its runs diverged, or the short runs that time its steps did.
int exit_code_of(const sweep::Sweep& sweep, const std::vector<sweep::PointRun>& runs, Log& log) {
  const sweep::Halving& halving = *sweep.halving;
  std::vector<std::string> without;
  for (const sweep::LeftOut& one : halving.left_out) {
    if (one.kind == sweep::LeftOut::Kind::Diverged) {
      without.push_back(one.name);
    }
  }
  for (const sweep::Rival& rival : halving.rivals) {
    const auto has_result = [&](const sweep::PointRun& run) {
      return (run.label == rival.name || run.label.starts_with(rival.name + ",")) &&
             state_of(run) == sweep::PointState::Finished;
    };
    if (std::ranges::none_of(runs, has_result)) {
      without.push_back(rival.name);
    }
  }
  if (without.empty()) {
    return 0;
  }
  log.warning("without a result, because of divergence: {}", join(without, ", "));
  return static_cast<int>(ErrorKind::Diverged);
}

}  // namespace

std::vector<sweep::PointRun> checked_runs(const sweep::Sweep& sweep, bool here) {
  auto runs = sweep::resolve_all(sweep);
  sweep::check_runs(sweep, runs, here);
  return runs;
}

void log_notes(const std::vector<sweep::PointRun>& runs, Log& log) {
  std::set<std::string> given;
  for (const sweep::PointRun& run : runs) {
    for (const std::string& note : run.notes) {
      if (given.insert(note).second) {
        log.info("{}", note);
      }
    }
  }
}

int train_runs(const std::vector<sweep::PointRun>& runs, std::size_t jobs, Log& log) {
  return report(sweep::train_points(runs, jobs, program_path(), log), runs, false, log);
}

int train_rounds(const sweep::Sweep& sweep, std::size_t jobs, Log& log) {
  const sweep::Halving& halving = *sweep.halving;
  const std::size_t count = sweep::rounds_of(sweep);
  for (std::size_t round = 0;; ++round) {
    const sweep::Round now = sweep::round_of(sweep, round);
    if (now.runs == 0 && !now.is_last) {
      continue;
    }
    const auto runs = checked_runs(now.sweep, true);
    const double length = sweep::length_of(halving, round);
    sweep::Later later;
    for (std::size_t next = round + 1; next < count; ++next) {
      const auto runs_then = static_cast<double>(sweep::expected_runs(sweep, next));
      later.runs += runs_then;
      later.lengths += runs_then * sweep::length_of(halving, next) / length;
    }
    int code = 0;
    if (now.runs > 0) {
      log_notes(runs, log);
      log.info(
          "round {} of {}: {} {} at {:.3g} % of the length", round + 1, count, now.runs,
          length == 1 ? "runs" : "pilots", 100 * length);
      if (now.is_full) {
        sweep::write_tuning(sweep, now);
      }
      code = sweep::train_points(
          runs, jobs, program_path(), log, later,
          /*may_diverge=*/true);
    }
    if (now.is_last) {
      return report(code == 0 ? exit_code_of(sweep, runs, log) : code, runs, true, log);
    }
    if (code != 0) {
      return code;  // a pilot has no result, so nothing can be chosen
    }
  }
}

void report_if_complete(const sweep::Sweep& sweep, bool of_rivals, Log& log) {
  std::vector<sweep::PointRun> runs;
  for (const sweep::Point& point : sweep::list_points(sweep)) {
    runs.push_back(sweep::resolve(sweep, point));
    const sweep::PointState state = state_of(runs.back());
    if (state != sweep::PointState::Finished && state != sweep::PointState::Failed) {
      return;
    }
  }
  try {
    print_report(runs, of_rivals, log);
  } catch (const std::exception& error) {
    log.warning("no report: {}", error.what());
  }
}

}  // namespace abtrain::app
