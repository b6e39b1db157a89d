#include "train/speeds.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/scalars.h"
#include "base/signals.h"
#include "base/socket.h"
#include "base/text.h"
#include "train/trainer.h"

namespace abtrain::train {

namespace {

constexpr const char* kVariable = "ABTRAIN_SPEED";
// As many steps run operator by operator before a GPU captures one.
constexpr std::int64_t kWarmUpSteps = TrainingStep::kEagerSteps + 1;
constexpr std::int64_t kMeasuredSteps = 3;  // at least, and for so long:
constexpr double kMeasureSeconds = 1.5;
constexpr double kTolerance = 1.05;

std::optional<double> speed_of_variable() {
  const auto text = env(kVariable);
  if (!text) {
    return std::nullopt;
  }
  double speed = 0;
  std::string ignored;
  ABT_CHECK(
      parse_number(*text, speed, ignored) && speed > 0 && speed <= 1e6, Config,
      "{}: expected a number above 0, up to 1e6, got '{}'", kVariable, printable(*text));
  return speed;
}

// Ends the steps once they have taken long enough.
class UntilMeasured : public comm::Control {
 public:
  bool stop_before(int, std::int64_t t) override {
    if (t <= kWarmUpSteps) {
      watch_.restart();
      return StopSignals::requested() != 0;
    }
    const std::int64_t steps = t - kWarmUpSteps;
    seconds_per_step = watch_.seconds() / static_cast<double>(steps);
    return (steps >= kMeasuredSteps && watch_.seconds() >= kMeasureSeconds) ||
           StopSignals::requested() != 0;
  }
  double seconds_per_step = 1;

 private:
  Stopwatch watch_;
};

// Examples per second of this process alone.
double measured_speed(const config::RunOptions& options, const Setup& setup) {
  config::RunOptions o = options;
  o.workers = 1;
  o.balance = {};
  o.method = {};
  o.method.name = "ddp";
  o.reducer = {};
  o.order = {};
  o.optimizer.lr = 1e-12;  // whatever the rate is, these steps must not diverge
  o.train.steps = 1'000'000;
  o.train.accumulate = 1;
  o.evaluate = {};
  o.evaluate.every = Duration::steps(0);
  o.checkpoint.every = Duration::steps(0);
  UntilMeasured control;
  TrainInputs inputs{o, setup.dataset, setup.validation, setup.device};
  inputs.device_copies = setup.device_copies.get();
  inputs.control = &control;
  train_threads(inputs);
  return static_cast<double>(o.data.batch_size) / control.seconds_per_step;
}

std::vector<double> numbers_of(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    std::string ignored;
    ABT_CHECK(
        parse_number(text, numbers.emplace_back(), ignored), PeerLost,
        "expected the speed of worker {}, got '{}'", numbers.size() - 1, printable(text));
  }
  return numbers;
}

}  // namespace

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
  std::optional<double> given;
  host.all_or_none([&] { given = speed_of_variable(); });
  std::vector<std::string> texts = host.gather(given ? print_number(*given) : "");
  const std::vector<std::string> hosts = host.gather(host_name());
  const auto without = std::ranges::find(texts, "");
  const bool measures = std::ranges::count(texts, "") == std::ssize(texts);
  host.all_or_none([&] {
    ABT_CHECK(
        measures || without == texts.end(), Config,
        "{}: expected it in the environment of all workers or of none, but worker {} on {} has "
        "none",
        kVariable, without - texts.begin(),
        hosts[static_cast<std::size_t>(without - texts.begin())]);
  });
  if (measures) {
    double speed = 0;
    host.all_or_none([&] { speed = measured_speed(options, setup); });
    texts = host.gather(print_number(speed));
  }
  speeds = numbers_of(texts);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    words.push_back(formatted("{:.4g} ({})", speeds[i], hosts[i]));
  }
  const auto [least, most] = std::ranges::minmax(speeds);
  const bool equal = measures && most <= kTolerance * least;
  if (equal) {
    speeds.clear();
  }
  log.info(
      "balance: batches of {}; {}: {}{}", config::batches_text(config::batches_of(options)),
      !measures ? kVariable
      : resumes ? "examples per second, measured again"
                : "examples per second",
      join(words, ", "), equal ? ", which is within 5 %" : "");
}

}  // namespace abtrain::train
