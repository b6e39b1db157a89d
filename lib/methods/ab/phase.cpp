#include "methods/ab/phase.h"

#include <algorithm>

#include "base/error.h"

namespace abtrain::methods {

Switch switch_after(const PhasePlan& plan, std::int64_t t, Phase phase) {
  if (t < plan.warmup) {
    return Switch::None;
  }
  if (t == plan.warmup) {
    return phase == Phase::Full ? Switch::Decompose : Switch::None;
  }
  const std::int64_t u = plan.reference_anchor ? t : t - plan.warmup;
  const std::int64_t place = u % plan.interval;
  if (phase == Phase::Ab && place == 0) {
    return plan.full_rank == 0 ? Switch::SyncAndDecompose : Switch::Sync;
  }
  if (phase == Phase::Full && place == plan.full_rank) {
    return Switch::Decompose;
  }
  return Switch::None;
}

std::int64_t
next_switch(const PhasePlan& plan, std::int64_t after, Phase phase) {
  if (phase == Phase::Full && after < plan.warmup) {
    return plan.warmup;
  }
  const std::int64_t zero = plan.reference_anchor ? 0 : plan.warmup;
  const std::int64_t place = phase == Phase::Ab ? 0 : plan.full_rank;
  const std::int64_t u = std::max(after, plan.warmup) - zero;
  return zero + u - u % plan.interval + place +
         (u % plan.interval >= place ? plan.interval : 0);
}

PhaseCounts count_phases(const PhasePlan& plan, std::int64_t steps) {
  PhaseCounts n;
  const auto add_steps = [&](std::int64_t t) {
    (n.last == Phase::Ab ? n.ab : n.full) += t - n.switched_at;
    n.switched_at = t;
  };
  for (std::int64_t t = next_switch(plan, -1, n.last); t <= steps;
       t = next_switch(plan, t, n.last)) {
    add_steps(t);
    switch (switch_after(plan, t, n.last)) {
      case Switch::None:
        break;
      case Switch::Sync:
        ++n.sync;
        n.last = Phase::Full;
        break;
      case Switch::SyncAndDecompose:
        ++n.sync;
        ++n.product_cuts;
        break;
      case Switch::Decompose:
        ++n.dense_cuts;
        n.last = Phase::Ab;
        break;
    }
  }
  const std::int64_t switched_at = n.switched_at;
  add_steps(steps);
  n.switched_at = switched_at;
  return n;
}

std::int64_t count_cuts(
    const MethodOptions& options,
    const PhasePlan& plan,
    std::int64_t steps) {
  const PhaseCounts n = count_phases(plan, steps);
  std::int64_t cuts = n.dense_cuts + n.product_cuts;
  cuts -= cuts > 0 && !options.cut_first ? 1 : 0;
  // As in AbTraining::finish(), except for layers that stay dense to the end.
  const bool ends_with_one =
      n.last == Phase::Full ||
      (options.sync == SyncMode::Full && n.switched_at != steps);
  return cuts + (ends_with_one ? 1 : 0);
}

PhasePlan make_phase_plan(const MethodOptions& options, const RunLength& run) {
  PhasePlan plan;
  plan.warmup = options.warmup_steps.in_steps(run);
  plan.interval = options.sync_every.in_steps(run);
  plan.full_rank = options.full_rank_steps.in_steps(run);
  const auto is_share = [](const Duration& duration) {
    return duration.unit == Duration::Unit::Percent && duration.value > 0;
  };
  if (is_share(options.sync_every)) {
    plan.interval = std::max<std::int64_t>(1, plan.interval);
  }
  if (is_share(options.full_rank_steps)) {
    plan.full_rank =
        std::min(std::max<std::int64_t>(1, plan.full_rank), plan.interval - 1);
  }
  plan.reference_anchor = options.anchor == Anchor::Reference;
  ABT_CHECK(
      plan.warmup >= 0,
      Config,
      "method.warmup_steps: expected 0 or more; got ",
      plan.warmup);
  ABT_CHECK(
      plan.interval >= 1,
      Config,
      "method.sync_every: expected at least 1 step; got ",
      plan.interval);
  ABT_CHECK(
      plan.full_rank >= 0 && plan.full_rank < plan.interval,
      Config,
      "method.full_rank_steps: expected 0 .. sync_every - 1 = ",
      plan.interval - 1,
      " steps; got ",
      plan.full_rank);
  return plan;
}

Ramp make_ramp(
    const MethodOptions& options,
    const PhasePlan& plan,
    const RunLength& run) {
  Ramp ramp;
  ramp.kind = options.ramp;
  ramp.start = options.ramp_start;
  ramp.steps = options.rebound_steps
                   ? options.rebound_steps->in_steps(run)
                   : std::min(
                         plan.interval - plan.full_rank,
                         plan.full_rank > 0 ? plan.full_rank : 20);
  return ramp;
}

double ramped_rate(
    const Ramp& ramp,
    std::int64_t k,
    double scheduled,
    double at_switch) {
  if (ramp.kind == RampKind::None || ramp.steps == 0 || k > ramp.steps) {
    return scheduled;
  }
  const auto steps = static_cast<double>(ramp.steps);
  // Late in a run the schedule may lie below the ramp's start.
  const double start = std::min(ramp.start, scheduled);
  if (ramp.kind == RampKind::Linear) {
    const double share = static_cast<double>(k - 1) / steps;
    return start + (scheduled - start) * share;
  }
  if (k == 1) {
    return start;
  }
  return std::clamp(
      static_cast<double>(k) * (at_switch - ramp.start) / steps,
      start,
      scheduled);
}

}  // namespace abtrain::methods
