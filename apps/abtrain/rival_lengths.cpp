#include "rival_lengths.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/text.h"
#include "configuration.h"
#include "plan/finished_run.h"
#include "sweep/child_process.h"
#include "sweep/halving.h"
#include "temporary_folder.h"

namespace abtrain::app {

namespace {

// The durations of a short run, in seconds; all are 0 if it diverged.
struct ShortRun {
  double train = 0;        // training, on the link if there is one
  double here = 0;         // training on this machine, as measured
  double whole = 0;        // from start to end of the run, on this machine
  std::string doubt = {};  // why the times are not reliable; "" if they are
};

// Trains `steps` steps of a rival, in a folder in `scratch`.
ShortRun short_run(
    const sweep::RivalList& list, const sweep::RivalPlan& rival, std::int64_t steps,
    const TemporaryFolder& scratch) {
  const std::string name = formatted("{}_{}", rival.name, steps);
  const std::string folder = scratch.path() + "/" + name;
  std::vector<std::string> command{program_path(), "train", "--config", list.config};
  const sweep::Sets own = {formatted("train.steps={}", steps), "evaluate.every=0"};
  for (const std::string& set : sweep::joined({list.common, rival.set, own})) {
    command.insert(command.end(), {"--set", set});
  }
  command.insert(command.end(), {"--name", name, "--output", scratch.path()});
  const Stopwatch watch;
  const auto child = sweep::ChildProcess::start(command, folder + ".log", {});
  while (!child->ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (const int signal = StopSignals::requested(); signal != 0) {
      throw Error(
          ErrorKind::Stopped,
          formatted("stopped by {} while measuring; nothing was written", signal_name(signal)));
    }
  }
  const int code = *child->ended();
  if (code == static_cast<int>(ErrorKind::Diverged)) {
    return {};
  }
  const double whole = watch.seconds();
  ABT_CHECK(
      code == 0, Config, "{}: a run of {} steps ended with exit code {}:\n{}", rival.name, steps,
      code, trim(read_file(folder + ".log", kMaxText)));
  const JsonObject summary = plan::read_summary(folder);
  return {
      sweep::seconds_of(read_run_configuration(folder), folder, list.link),
      summary.maybe("/seconds/train").value_or(whole), whole,
      value_in<bool>(summary.all(), "beside_others")
          ? formatted(
                "beside other programs, its workers had a core for {:.0f} % of their compute time "
                "while it was measured: its steps are not reliable",
                100 * summary.number("/core_share"))
          : ""};
}

// If shorter runs are refused, the first run may have up to this many steps.
constexpr std::int64_t kMaxTries = 1024;

// Runs with fewer steps show nothing, and pilots take only a quarter of the steps (kPilotLength).
constexpr std::int64_t kMinSteps = 16;

// Returns the number of steps of a run that takes `wanted` seconds; 0 if the rival diverged.
// Measures short runs, each with more steps than the one before, and draws a line through the last
// two, because each run also takes time to start. `measure(steps)`: seconds of a short run.
// `first`: steps of the first short run.
std::int64_t steps_for(const auto& measure, std::int64_t first, double wanted) {
  constexpr double kShare = 0.15;  // of `wanted`, for the last short run
  constexpr double kLongEnough = 0.08;
  constexpr double kLongStart = 0.3;  // if the first run takes this share, it is enough
  constexpr double kMinGrowth = 2;
  constexpr double kMaxGrowth = 12;
  std::int64_t steps = first;
  double seconds = measure(steps);
  double each = seconds / static_cast<double>(steps);
  double start = 0;
  while (seconds > 0 && seconds < (steps == first ? kLongStart : kLongEnough) * wanted) {
    const std::int64_t before = steps;
    const double took = seconds;
    steps = std::llround(
        static_cast<double>(steps) * std::clamp(kShare * wanted / seconds, kMinGrowth, kMaxGrowth));
    seconds = measure(steps);
    each = (seconds - took) / static_cast<double>(steps - before);
    start = seconds - each * static_cast<double>(steps);
    if (!(each > 0) || start < 0) {
      each = seconds / static_cast<double>(steps);
      start = 0;
    }
  }
  return seconds <= 0 ? 0 : std::max<std::int64_t>(1, std::llround((wanted - start) / each));
}

// Sets the rival's steps. If it cannot take part, returns the reason.
std::optional<sweep::LeftOut> set_length(
    const sweep::RivalList& list, std::int64_t steps, const TemporaryFolder& scratch,
    sweep::RivalPlan& rival, Log& log) {
  using Kind = sweep::LeftOut::Kind;
  const auto because = [&](const std::string& why, Kind kind = Kind::Other) {
    return sweep::LeftOut{rival.name, why, kind};
  };
  rival.steps = steps;
  if (list.seconds > 0) {
    std::int64_t first = 4;
    while (!sweep::refusal(list, rival, first, false).empty()) {
      first *= 2;
      if (first > kMaxTries) {
        return because(sweep::refusal(list, rival, first, false));
      }
    }
    ShortRun last;    // the latest short run
    double each = 0;  // seconds of one of its steps on this machine
    const auto measure = [&](std::int64_t count) {
      last = short_run(list, rival, count, scratch);
      each = last.here / static_cast<double>(count);
      return last.train;
    };
    rival.steps = steps_for(measure, first, list.seconds);
    rival.seconds_here = each * static_cast<double>(rival.steps);
    rival.start_seconds = std::max(0.0, last.whole - last.here);
    if (!last.doubt.empty()) {
      rival.why += "; " + last.doubt;
      log.warning("{}: {}", rival.name, last.doubt);
    }
    if (rival.steps == 0) {
      return because("diverged in its first steps, as configured", Kind::Diverged);
    }
    if (rival.steps < kMinSteps) {
      return because(formatted("only {} steps fit into {} s", rival.steps, list.seconds));
    }
  }
  std::string why = sweep::refusal(list, rival, rival.steps, false);
  if (why.empty() && rival.tune.size() > 1) {
    const std::int64_t pilot = sweep::steps_in(rival.steps, sweep::kPilotLength);
    if (const std::string of_pilot = sweep::refusal(list, rival, pilot, true); !of_pilot.empty()) {
      why = formatted("in pilots of {} steps, {}", pilot, of_pilot);
    }
  }
  return why.empty() ? std::nullopt : std::optional(because(why));
}

}  // namespace

void set_lengths(sweep::RivalList& list, std::int64_t steps, Log& log) {
  const TemporaryFolder scratch(make_temporary_folder());
  std::vector<sweep::RivalPlan> timed;
  for (std::size_t i = 0; i < list.rivals.size(); ++i) {
    sweep::RivalPlan rival = list.rivals[i];
    log.live(formatted("measuring {} ({} of {})", rival.name, i + 1, list.rivals.size()));
    if (const auto left_out = set_length(list, steps, scratch, rival, log)) {
      log.warning("{} is left out: {}", left_out->name, left_out->why);
      list.left_out.push_back(*left_out);
      continue;
    }
    log.info("{}: {} steps; {}", rival.name, with_commas(rival.steps), rival.why);
    timed.push_back(std::move(rival));
  }
  log.live("");
  list.rivals = std::move(timed);
}

}  // namespace abtrain::app
