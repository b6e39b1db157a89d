#include "config/short_run.h"

#include <algorithm>
#include <cmath>

#include "base/scalars.h"
#include "base/text.h"
#include "methods/method_kind.h"

namespace abtrain::config {

std::vector<std::string> fit_warmups(
    RunOptions& o,
    const std::function<bool(const std::string& key)>& is_given) {
  std::vector<std::string> notes;
  const std::int64_t steps = o.train.steps;
  const auto fit = [&](const char* key, Duration& length, double most) {
    if (length.unit != Duration::Unit::Steps || length.value <= most ||
        is_given(key)) {
      return;
    }
    const double tenth =
        std::max(1.0, std::round(static_cast<double>(steps) / 10));
    const Duration fitted = Duration::steps(std::min(most, tenth));
    notes.push_back(formatted(
        "{}: {} instead of {}, which do not fit into train.steps {}",
        key,
        print_duration(fitted),
        print_duration(length),
        steps));
    length = fitted;
  };
  const methods::MethodKind& kind = methods::kind_of(o.method);
  fit("schedule.warmup_steps",
      o.schedule.warmup_steps,
      static_cast<double>(steps));
  if (kind.changes_weights) {
    fit("method.warmup_steps",
        o.method.warmup_steps,
        static_cast<double>(steps - 1));
  }
  if (!kind.factors_weights || o.method.anneal_steps.value <= 0) {
    return notes;
  }
  // How many steps an epoch has is not known yet: as many as the run.
  const RunLength length{steps, steps};
  const std::int64_t warmup = o.method.warmup_steps.in_steps(length);
  const std::int64_t most =
      kind.timeline(o.method, length).last_decomposition() - warmup;
  const std::int64_t anneal = o.method.anneal_steps.in_steps(length);
  if (anneal > std::max<std::int64_t>(0, most) &&
      !is_given("method.anneal_steps")) {
    const Duration fitted =
        Duration::steps(std::max(0.0, static_cast<double>(most)));
    notes.push_back(formatted(
        "method.anneal_steps: {} instead of {}, as the last decomposition "
        "comes after step {} of train.steps {}",
        print_duration(fitted),
        print_duration(o.method.anneal_steps),
        warmup + most,
        steps));
    o.method.anneal_steps = fitted;
  }
  return notes;
}

}  // namespace abtrain::config
