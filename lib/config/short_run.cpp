#include "config/short_run.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/scalars.h"
#include "config/run_length.h"
#include "data/dataset.h"
#include "methods/method_kind.h"

namespace abtrain::config {

namespace {

bool is_in_epochs(const Duration& length) {
  return length.unit == Duration::Unit::Epochs && length.value > 0;
}

// Returns the length of the run with its data; nullopt if the data are missing or do not fit, which
// is reported when they are needed.
std::optional<RunLength> length_with_data(const RunOptions& o) {
  try {
    return run_length(o, data::dataset_shape(o.data).train - o.data.validation);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<std::string> fit_warmups(
    RunOptions& o, const std::function<bool(const std::string& key)>& is_given) {
  std::vector<std::string> notes;
  const std::int64_t steps = o.train.steps;
  // The data set may be a folder of many files: read it only if a length needs it.
  const bool asks = is_in_epochs(o.schedule.warmup_steps) || is_in_epochs(o.method.warmup_steps) ||
                    is_in_epochs(o.method.anneal_steps);
  const std::optional<RunLength> known = asks ? length_with_data(o) : std::nullopt;
  // Without the data, an epoch counts as the whole run.
  const RunLength length = known.value_or(RunLength{steps, steps});
  const auto fit = [&](const char* key, Duration& warmup, std::int64_t most) {
    if (warmup.unit == Duration::Unit::Percent || (is_in_epochs(warmup) && !known) ||
        warmup.in_steps(length) <= most || is_given(key)) {
      return;
    }
    const double tenth = std::max(1.0, std::round(static_cast<double>(steps) / 10));
    const Duration fitted = Duration::steps(std::min(static_cast<double>(most), tenth));
    notes.push_back(formatted(
        "{}: {} instead of {}{}, which do not fit into train.steps {}", key, print_duration(fitted),
        print_duration(warmup),
        is_in_epochs(warmup) ? formatted(" ({} steps)", warmup.in_steps(length)) : "", steps));
    warmup = fitted;
  };
  const methods::MethodKind& kind = methods::kind_of(o.method);
  fit("schedule.warmup_steps", o.schedule.warmup_steps, steps);
  if (kind.changes_weights) {
    fit("method.warmup_steps", o.method.warmup_steps, steps - 1);
  }
  if (!kind.factors_weights || o.method.anneal_steps.value <= 0) {
    return notes;
  }
  const std::int64_t warmup = o.method.warmup_steps.in_steps(length);
  const std::int64_t most = kind.timeline(o.method, length).last_decomposition() - warmup;
  const std::int64_t anneal = o.method.anneal_steps.in_steps(length);
  if (anneal > std::max<std::int64_t>(0, most) && !is_given("method.anneal_steps")) {
    const Duration fitted = Duration::steps(std::max(0.0, static_cast<double>(most)));
    notes.push_back(formatted(
        "method.anneal_steps: {} instead of {}, as the last decomposition "
        "comes after step {} of train.steps {}",
        print_duration(fitted), print_duration(o.method.anneal_steps), warmup + most, steps));
    o.method.anneal_steps = fitted;
  }
  return notes;
}

RunOptions steps_alone(const RunOptions& configured, int workers) {
  RunOptions o = configured;
  o.workers = workers;
  o.balance = {};
  o.order = {};
  o.evaluate = {};
  o.evaluate.every = Duration::steps(0);
  o.checkpoint.every = Duration::steps(0);
  return o;
}

}  // namespace abtrain::config
