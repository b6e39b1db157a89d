#include "sweep_training.h"

#include <set>

#include "base/env.h"
#include "configuration.h"
#include "link_option.h"
#include "sweep/child_process.h"
#include "sweep/halving.h"
#include "sweep/local_jobs.h"
#include "sweep/point_state.h"

namespace abtrain::app {

namespace {

// Prints the table of the finished runs with the command `report`; of rivals
// the front, which it also writes as a page.
int report(const std::vector<sweep::PointRun>& runs, const sweep::Halving* halving, Log& log) {
  std::vector<std::string> command{program_path(), "report"};
  if (halving != nullptr) {
    command.emplace_back("--front");
    append_link(command, halving->link);
  }
  const std::size_t words = command.size();
  for (const sweep::PointRun& run : runs) {
    if (state_of(run) == sweep::PointState::Finished) {
      command.push_back(run.folder);
    }
  }
  if (command.size() == words) {
    return 0;
  }
  const int code = sweep::ChildProcess::start(command, "", {})->wait();
  if (halving == nullptr || code != 0) {
    return code;
  }
  const std::string page = runs.front().options.output + "/report.html";
  append_option(command, "-o", page);
  const int written = sweep::ChildProcess::start(command, "", {})->wait();
  if (written == 0) {
    log.info("the page of this report: {}", page);
  }
  return written;
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
  const int code = sweep::train_points(runs, jobs, program_path(), log);
  const int reported = report(runs, nullptr, log);
  return code != 0 ? code : reported;
}

int train_rounds(const sweep::Sweep& sweep, std::size_t jobs, Log& log) {
  const sweep::Halving& halving = *sweep.halving;
  const std::size_t settings = halving.settings();
  const std::size_t count = sweep::rounds_of(settings);
  for (std::size_t round = 0;; ++round) {
    const sweep::Round now = sweep::round_of(sweep, round);
    const auto runs = checked_runs(now.sweep, true);
    const double length = sweep::length_of(settings, round);
    sweep::Later later;
    for (std::size_t next = round + 1; next < count; ++next) {
      const auto runs_then = static_cast<double>(sweep::runs_in(sweep, next));
      later.runs += runs_then;
      later.lengths += runs_then * sweep::length_of(settings, next) / length;
    }
    log_notes(runs, log);
    log.info(
        "round {} of {}: {} {} at {:.3g} % of the length", round + 1, count, runs.size(),
        now.is_last ? "runs" : "pilots", 100 * length);
    if (now.is_last) {
      sweep::write_tuning(sweep, now);
    }
    const int code = sweep::train_points(
        runs, jobs, program_path(), log, later,
        /*may_diverge=*/true);
    if (now.is_last) {
      const int reported = report(runs, &halving, log);
      return code != 0 ? code : reported;
    }
    if (code != 0) {
      return code;  // a pilot without a result: nothing can be chosen
    }
  }
}

}  // namespace abtrain::app
