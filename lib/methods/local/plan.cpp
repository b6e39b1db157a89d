#include "methods/local/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "methods/method_kind.h"

namespace abtrain::methods {

LocalPlan make_local_plan(const MethodOptions& options, const RunLength& run) {
  const bool is_diloco = &kind_of(options) == &kDiloco;
  const LocalPlan plan{
      .warmup = options.warmup_steps.in_steps(run),
      .interval = std::max<std::int64_t>(1, options.sync_every.in_steps(run)),
      .fragments = is_diloco ? options.fragments : 1,
      .delay = is_diloco ? options.delay : 0,
      .steps = run.steps,
      .mixing = is_diloco ? options.mixing : 1,
      .with_moments = !is_diloco && options.average == Averaged::ParamsAndMoments,
      .outer = outer_step_of(options)};
  ABT_CHECK(
      plan.fragments <= plan.interval, Config,
      "method.fragments: expected at most method.sync_every ({} steps), got {}", plan.interval,
      plan.fragments);
  ABT_CHECK(
      plan.delay < (plan.interval + plan.fragments - 1) / plan.fragments, Config,
      "method.delay: expected less than method.sync_every / method.fragments "
      "({} / {} steps), got {}",
      plan.interval, plan.fragments, plan.delay);
  ABT_CHECK(
      plan.warmup < plan.steps, Config,
      "method.warmup_steps: a warm-up of {} steps leaves no local step in a "
      "run of {}",
      plan.warmup, plan.steps);
  return plan;
}

Timeline local_timeline(const LocalPlan& plan) {
  const auto begin = [&](std::int64_t f) { return f * plan.interval / plan.fragments; };
  std::vector<Stretch> round;
  for (std::int64_t f = 0; f < plan.fragments; ++f) {
    round.push_back(
        {Phase::Local, Over::Nobody, begin(f + 1) - begin(f), Event::SynchronizeFragment, f});
  }
  Timeline timeline = make_timeline(
      {{Phase::Full, Over::World, plan.warmup, Event::TrainAlone}}, std::move(round), plan.steps,
      plan.delay);
  timeline.fragments = plan.fragments;
  return timeline;
}

}  // namespace abtrain::methods
