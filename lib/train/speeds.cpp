#include "train/speeds.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/mapped.h"
#include "base/scalars.h"
#include "base/signals.h"
#include "base/socket.h"
#include "base/text.h"
#include "config/short_run.h"
#include "train/trainer.h"

namespace abtrain::train {

namespace {

constexpr const char* kVariable = "ABTRAIN_SPEED";
// A GPU runs kEagerSteps steps operator by operator and then captures a CUDA graph.
constexpr std::int64_t kWarmUpSteps = TrainingStep::kEagerSteps + 1;
constexpr std::size_t kWindows = 5;
constexpr double kWindowSeconds = 0.2;  // a window has at least one step
constexpr double kTolerance = 1.05;
// The smallest share of a step's time that is attributed to its examples. A smaller share, being a
// difference of two measurements, would be uncertain and lead to very unequal batches.
constexpr double kMinShare = 0.5;

// The speed in the environment variable ABTRAIN_SPEED, in any unit; 0 if it is not set.
double speed_of_variable() {
  const auto text = env(kVariable);
  double speed = 0;
  std::string ignored;
  ABT_CHECK(
      !text || (parse_number(*text, speed, ignored) && speed > 0 && speed <= 1e6), Config,
      "{}: expected a number above 0, up to 1e6, got '{}'", kVariable, printable(*text));
  return speed;
}

// Stops the training once kWindows windows have been measured.
class UntilMeasured : public comm::Control {
 public:
  bool stop_before(int, std::int64_t t) override {
    if (t <= kWarmUpSteps) {
      watch_.restart();
    } else if (++steps_; watch_.seconds() >= kWindowSeconds) {
      windows_.push_back(watch_.seconds() / static_cast<double>(steps_));
      steps_ = 0;
      watch_.restart();
    }
    return windows_.size() == kWindows || StopSignals::requested() != 0;
  }
  // The median, because other work may have disturbed some windows.
  double seconds_per_step() {
    std::ranges::sort(windows_);
    return windows_.empty() ? 1 : windows_[windows_.size() / 2];
  }

 private:
  Stopwatch watch_;
  std::int64_t steps_ = 0;
  std::vector<double> windows_;
};

// Times a step of this process alone.
double seconds_per_step(const config::RunOptions& options, std::int64_t batch, const Setup& setup) {
  config::RunOptions o = config::steps_alone(options, 1);
  o.method = {};
  o.method.name = "ddp";
  o.model.frozen = {};
  o.model.adapter.reset();
  o.reducer = {};
  o.optimizer.lr = 1e-12;  // whatever the rate is, these steps must not diverge
  o.data.batch_size = batch;
  o.train.steps = 1'000'000;
  o.train.seconds = 0;
  o.train.accumulate = 1;
  UntilMeasured control;
  train_threads(
      {.options = o,
       .dataset = setup.dataset,
       .validation = setup.validation,
       .device = setup.device,
       .device_copies = setup.device_copies.get(),
       .control = &control});
  return control.seconds_per_step();
}

StepCost measured_cost(const config::RunOptions& options, const Setup& setup) {
  const std::int64_t large = options.data.batch_size;
  const std::int64_t small = (large + 3) / 4;
  const double seconds = seconds_per_step(options, large, setup);
  const double average = seconds / static_cast<double>(large);
  if (small == large) {
    return {0, average};
  }
  const double slope =
      (seconds - seconds_per_step(options, small, setup)) / static_cast<double>(large - small);
  const double per_example = std::clamp(slope, kMinShare * average, average);
  return {seconds - per_example * static_cast<double>(large), per_example};
}

}  // namespace

std::vector<double> equally_long_batches(const std::vector<StepCost>& costs, double examples) {
  std::vector<double> batches(costs.size(), 0);
  for (bool fits = false; !fits;) {
    double left = examples;
    double rate = 0;  // examples per second
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (batches[i] == 1) {
        left -= 1;
      } else {
        rate += 1 / costs[i].per_example;
        left += costs[i].alone / costs[i].per_example;
      }
    }
    fits = true;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (batches[i] != 1) {
        batches[i] = (left / rate - costs[i].alone) / costs[i].per_example;
        if (batches[i] <= 1) {
          batches[i] = 1;
          fits = false;
        }
      }
    }
  }
  return batches;
}

void choose_speeds(
    config::RunOptions& options, const Setup& setup, WorkerHost& host, bool resumes, Log& log) {
  std::vector<double>& speeds = options.balance.speeds;
  const bool alike = host.workers_in_process == options.workers;
  if (!options.balance.measures || alike) {
    if (options.balance.is_on()) {
      log.info(
          "balance: batches of {}{}", config::batches_text(config::batches_of(options)),
          options.balance.measures ? ", as all workers are in this process" : "");
    }
    return;
  }
  const std::vector<double> given = host.gather(speed_of_variable);
  const std::vector<std::string> hosts = host.gather(host_name);
  const auto without = std::ranges::find(given, 0);
  const bool measures = std::ranges::count(given, 0) == std::ssize(given);
  host.all_or_none([&] {
    ABT_CHECK(
        measures || without == given.end(), Config,
        "{}: expected it in the environment of all workers or of none, but worker {} on {} has "
        "none",
        kVariable, without - given.begin(),
        hosts[static_cast<std::size_t>(without - given.begin())]);
  });
  std::vector<std::string> words;
  bool equal = false;
  if (measures) {
    const auto costs = host.gather([&] { return measured_cost(options, setup); });
    const auto batch = static_cast<double>(options.data.batch_size);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      seconds.push_back(costs[i].alone + batch * costs[i].per_example);
      words.push_back(formatted(
          "{:.3g} and {:.3g} per example ({})", 1e3 * costs[i].alone, 1e3 * costs[i].per_example,
          hosts[i]));
    }
    const auto [least, most] = std::ranges::minmax(seconds);
    equal = most <= kTolerance * least;
    if (!equal) {
      speeds = equally_long_batches(costs, batch * static_cast<double>(costs.size()));
    }
  } else {
    speeds = given;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      words.push_back(formatted("{:.4g} ({})", speeds[i], hosts[i]));
    }
  }
  log.info(
      "balance: batches of {}; {}: {}{}", config::batches_text(config::batches_of(options)),
      !measures ? kVariable
      : resumes ? "milliseconds per step, measured again"
                : "milliseconds per step",
      join(words, ", "), equal ? ", which is within 5 %" : "");
}

config::RunOptions with_batches(const config::RunOptions& options) {
  config::RunOptions recorded = options;
  if (options.balance.measures) {
    const auto batches = config::batches_of(options);
    recorded.balance = {};
    if (!options.balance.speeds.empty()) {
      recorded.balance.speeds.assign(batches.begin(), batches.end());
    }
  }
  return recorded;
}

}  // namespace abtrain::train
