#include "methods/phase.h"

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

PhasePlan make_phase_plan(
    const MethodOptions& options, const RunLength& run) {
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
    plan.full_rank = std::min(
        std::max<std::int64_t>(1, plan.full_rank), plan.interval - 1);
  }
  plan.reference_anchor = options.anchor == "reference";
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
  ramp.kind = options.ramp == "none"  ? RampKind::None
      : options.ramp == "reference" ? RampKind::Reference
                                    : RampKind::Linear;
  ramp.start = options.ramp_start;
  ramp.steps = options.rebound_steps.value >= 0
      ? options.rebound_steps.in_steps(run)
      : std::min(
            plan.interval - plan.full_rank,
            plan.full_rank > 0 ? plan.full_rank : 20);
  return ramp;
}

double ramped_rate(
    const Ramp& ramp, std::int64_t k, double scheduled, double at_switch) {
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
