#include "methods/ab/phase.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace abtrain::methods {

Timeline ab_timeline(const PhasePlan& plan, std::int64_t steps) {
  const Event sync = plan.full_rank > 0 ? Event::Synchronize : Event::SynchronizeAndDecompose;
  const std::int64_t first_sync = plan.reference_anchor
                                      ? (plan.warmup / plan.interval + 1) * plan.interval
                                      : plan.warmup + plan.interval;
  const auto full = [&](std::int64_t length) {
    return Stretch{Phase::Full, Over::World, length, Event::Decompose};
  };
  const auto ab = [&](std::int64_t length) {
    return Stretch{Phase::Ab, Over::Group, length, sync};
  };
  std::vector<Stretch> round;
  if (plan.full_rank > 0) {
    round.push_back(full(plan.full_rank));
  }
  round.push_back(ab(plan.interval - plan.full_rank));
  std::vector<Stretch> opening = {full(plan.warmup)};
  const std::int64_t first = first_sync - plan.warmup;
  // Adds an AB phase `times` times; the run's first AB phase may have another length.
  const auto add = [&](std::int64_t times, Event after) {
    if (opening.size() == 1 && times > 0) {
      opening.push_back(ab(first));
      opening.back().after = after;
      --times;
    }
    if (times > 0) {
      opening.push_back(ab(plan.interval));
      opening.back().times = times;
      opening.back().after = after;
    }
  };
  if (plan.averages) {
    std::int64_t syncs = plan.cut_first ? 0 : 1;  // that may decompose
    if (plan.anneal > 0) {
      const std::int64_t left = std::max<std::int64_t>(0, plan.anneal - first);
      syncs = 1 + (left + plan.interval - 1) / plan.interval;
    }
    const std::int64_t cuts = std::min(syncs, kAveragedCuts);
    for (std::int64_t k = 0; k < cuts; ++k) {
      add((k + 1) * syncs / cuts - k * syncs / cuts - 1, Event::AverageFactors);
      add(1, sync);
    }
    round.back().after = Event::AverageFactors;
  }
  if (opening.size() == 1) {
    add(1, round.back().after);
  }
  return make_timeline(std::move(opening), std::move(round), steps);
}

PhasePlan make_phase_plan(const MethodOptions& options, const RunLength& run) {
  PhasePlan plan{
      .warmup = options.warmup_steps.in_steps(run),
      .interval = options.sync_every.in_steps(run),
      .full_rank = options.full_rank_steps.in_steps(run),
      .reference_anchor = options.anchor == Anchor::Reference,
      .anneal = options.anneal_steps.in_steps(run),
      .cut_first = options.cut_first};
  const auto is_share = [](const Duration& duration) {
    return duration.unit == Duration::Unit::Percent && duration.value > 0;
  };
  if (is_share(options.sync_every)) {
    plan.interval = std::max<std::int64_t>(1, plan.interval);
  }
  if (is_share(options.full_rank_steps)) {
    plan.full_rank = std::min(std::max<std::int64_t>(1, plan.full_rank), plan.interval - 1);
  }
  plan.averages = (options.trains == Trains::Both || keeps_bases(options)) && plan.full_rank == 0;
  ABT_CHECK(
      plan.interval >= 1, Config, "method.sync_every: expected at least 1 step; got {}",
      plan.interval);
  ABT_CHECK(
      plan.full_rank >= 0 && plan.full_rank < plan.interval, Config,
      "method.full_rank_steps: expected 0 .. sync_every - 1 = {} steps; got {}", plan.interval - 1,
      plan.full_rank);
  return plan;
}

linalg::RankRule rule_after(const MethodOptions& options, const PhasePlan& plan, std::int64_t t) {
  linalg::RankRule rule = options.rank;
  rule.always = adapts(options);
  const std::int64_t done = t - plan.warmup;
  if (plan.anneal > 0 && done < plan.anneal) {
    const double x =
        static_cast<double>(std::max<std::int64_t>(done, 0)) / static_cast<double>(plan.anneal);
    const double from = std::min(options.anneal_from, rule.ratio);
    rule.ratio = from * std::pow(rule.ratio / from, x);
  }
  return rule;
}

Ramp make_ramp(const MethodOptions& options, const PhasePlan& plan, const RunLength& run) {
  constexpr double kStart = 1e-5;
  return {
      options.ramp, kStart,
      options.rebound_steps
          ? options.rebound_steps->in_steps(run)
          : std::min(plan.interval - plan.full_rank, plan.full_rank > 0 ? plan.full_rank : 20)};
}

double ramped_rate(const Ramp& ramp, std::int64_t k, double scheduled, double at_switch) {
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
  return std::clamp(static_cast<double>(k) * (at_switch - ramp.start) / steps, start, scheduled);
}

}  // namespace abtrain::methods
