#include "methods/local/plan.h"

#include <algorithm>

#include "base/error.h"

namespace abtrain::methods {

std::optional<std::int64_t> LocalPlan::begins_after(std::int64_t t) const {
  const std::int64_t local = t - warmup;
  if (local <= 0 || t + delay >= steps) {
    return std::nullopt;
  }
  for (std::int64_t f = 0; f < fragments; ++f) {
    if ((f + 1) * interval / fragments % interval == local % interval) {
      return f;
    }
  }
  return std::nullopt;
}

std::int64_t LocalPlan::meetings_of(std::int64_t fragment) const {
  const std::int64_t left = steps - delay - first_of(fragment);
  return left <= 0 ? 0 : (left + interval - 1) / interval;
}

bool has_local_steps(const MethodOptions& options) {
  return options.name == "local-sgd" || options.name == "diloco";
}

LocalPlan make_local_plan(const MethodOptions& options, const RunLength& run) {
  LocalPlan plan;
  plan.warmup = options.warmup_steps.in_steps(run);
  plan.interval = std::max<std::int64_t>(1, options.sync_every.in_steps(run));
  plan.steps = run.steps;
  if (options.name == "diloco") {
    plan.fragments = options.fragments;
    plan.delay = options.delay;
  }
  ABT_CHECK(
      plan.fragments <= plan.interval,
      Config,
      "method.fragments: expected at most method.sync_every (",
      plan.interval,
      " steps), got ",
      plan.fragments);
  ABT_CHECK(
      plan.delay < (plan.interval + plan.fragments - 1) / plan.fragments,
      Config,
      "method.delay: expected less than method.sync_every / method.fragments "
      "(",
      plan.interval,
      " / ",
      plan.fragments,
      " steps), got ",
      plan.delay);
  ABT_CHECK(
      plan.warmup < plan.steps,
      Config,
      "method.warmup_steps: a warm-up of ",
      plan.warmup,
      " steps leaves no local step in a run of ",
      plan.steps);
  return plan;
}

std::string describe(const LocalPlan& plan) {
  std::string text =
      str(plan.warmup,
          " data-parallel steps, then each worker trains alone; every ",
          plan.interval,
          " steps it synchronises");
  if (plan.fragments > 1) {
    text += str(" each of ", plan.fragments, " fragments, in turn");
  }
  if (plan.delay > 0) {
    text += str(", and the result is used ", plan.delay, " steps later");
  }
  return text;
}

double local_copies(const MethodOptions& options) {
  if (!has_local_steps(options)) {
    return 0;
  }
  if (options.name == "local-sgd") {
    return 2;  // x, and the change since then
  }
  const auto change = 1.0 / static_cast<double>(options.fragments);
  return 1 + (options.outer_momentum > 0 ? 1 : 0) + change;
}

}  // namespace abtrain::methods
