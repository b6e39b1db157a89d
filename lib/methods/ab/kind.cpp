// The MethodKind of AB-training.
#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/rows.h"
#include "base/scalars.h"
#include "base/text.h"
#include "compress/schemes.h"
#include "methods/ab/ab.h"
#include "methods/ab/phase.h"
#include "methods/ab/synchronize.h"
#include "methods/ab/traffic.h"
#include "methods/method_kind.h"
#include "methods/outer_step.h"

namespace abtrain::methods {

namespace {

Timeline ab_events(const MethodOptions& options, const RunLength& run) {
  const PhasePlan plan = make_phase_plan(options, run);
  Timeline timeline = ab_timeline(plan, run.steps);
  timeline.gradual = {plan.anneal, make_ramp(options, plan, run).steps};
  return timeline;
}

std::vector<TrafficRow> ab_rows(const Timeline&) {
  return {
      {"dense step", "dense_step", &TrafficPlan::full_step},
      {"AB step", "ab_step", &TrafficPlan::ab_step},
      {"synchronization", "synchronization", &TrafficPlan::sync},
      {"decomposition", "decomposition", &TrafficPlan::decompose}};
}

void check_full_phase(const MethodSetup& setup, Conflicts& out) {
  const compress::ReducerOptions& reducer = setup.options.full_phase.reducer;
  if (reducer.name) {
    compress::check(reducer, "method.full_phase.reducer", setup.workers, out);
  }
}

void check_outer(const MethodSetup& setup, Conflicts& out) {
  const MethodOptions& o = setup.options;
  const compress::ReducerOptions& wire = o.outer.wire;
  const OuterStep step = outer_step_of(o);
  const bool dense_steps = o.full_rank_steps.value > 0;
  const bool halves = o.sync != SyncMode::OnlyLearned && o.sync != SyncMode::OnlyB;
  conflict_if(
      step.rule != OuterRule::Average && halves, out,
      {"method.outer.name", "method.sync", "method.name"},
      "an outer step needs the change of each factor, but method.sync "
      "{} halves the changes; expected average, or method.sync "
      "only-learned or only-b",
      name_of(o.sync));
  conflict_if(
      step.has_velocity() && !halves && dense_steps, out,
      {"method.outer.momentum", "method.full_rank_steps", "method.outer.name", "method.name"},
      "the momentum of a factor's change has no meaning after the dense "
      "steps that follow it; expected 0, or method.full_rank_steps 0, "
      "got {} and {}",
      step.momentum, print_duration(o.full_rank_steps));
  if (!wire.name) {
    return;
  }
  if (compress::compresses(wire) && !compress::wire_format(wire)) {
    conflict_if(
        true, out, {"method.outer.wire.name", "method.name"},
        "ab sends changes of factors from one role to the other, which "
        "{} cannot code; expected auto, plain, int8, int4, int2 or "
        "sparseloco",
        *wire.name);
    return;
  }
  compress::check(wire, "method.outer.wire", setup.workers, out);
  const compress::ReducerOptions defaults;
  const std::pair<const char*, bool> without_effect[] = {
      {"min_numel", wire.min_numel.has_value()},
      {"dense_steps", wire.dense_steps != defaults.dense_steps},
      {"evaluate_every", wire.evaluate_every != defaults.evaluate_every},
      {"bucket_mb", wire.bucket_mb != defaults.bucket_mb}};
  for (const auto& [key, given] : without_effect) {
    conflict_if(
        given, out, {formatted("method.outer.wire.{}", key), "method.name"},
        "ab sends the changes of all factors as one code; expected no such key");
  }
  conflict_if(
      compress::wire_format(wire) && compress::has_error_feedback(wire) && dense_steps, out,
      {"method.outer.wire.name", "method.full_rank_steps", "method.outer.wire.error_feedback",
       "method.name"},
      "what {} does not send of a factor's change has no meaning after "
      "the dense steps that follow it; expected method.full_rank_steps "
      "0, or method.outer.wire.error_feedback false, got {}",
      *wire.name, print_duration(o.full_rank_steps));
}

void check_adapters(const MethodOptions& o, Conflicts& out) {
  const auto refuse = [&](bool given, const char* key, const char* reason) {
    conflict_if(given, out, {key, "method.remainder", "method.name"}, "{}", reason);
  };
  refuse(
      o.warmup_steps.value > 0, "method.warmup_steps",
      "with method.remainder freeze the weights are adapted from the first step on; expected 0");
  refuse(
      o.full_rank_steps.value > 0, "method.full_rank_steps",
      "with method.remainder freeze there are no dense steps; expected 0");
  refuse(
      o.anneal_steps.value > 0, "method.anneal_steps",
      "the rank of an adapter stays; expected 0 with method.remainder freeze");
  refuse(
      !o.cut_first, "method.cut_first",
      "an adapter has its rank from the start; expected true with method.remainder freeze");
  refuse(
      o.keep_variance, "method.keep_variance",
      "a frozen remainder keeps the weight as it is; expected false with method.remainder freeze");
  refuse(
      linalg::is_global(o.rank), "method.rank.rule",
      "a budget of stored parameters has no meaning for adapters; expected fixed, ratio, energy or "
      "sigma with method.remainder freeze");
  conflict_if(
      o.start == AdapterStart::Zero && linalg::kind_of(o.rank).needs == linalg::RankNeeds::Values,
      out, {"method.rank.rule", "method.start", "method.name"},
      "an adapter that begins as zero has no singular values; expected fixed or ratio");
  conflict_if(
      o.alpha > 0 && o.start != AdapterStart::Zero, out,
      {"method.alpha", "method.start", "method.name"},
      "the product of an adapter that begins with the weight's singular values counts once; "
      "expected 0, or method.start zero");
  conflict_if(
      o.roles == Roles::Alternate && o.trains == Trains::Both, out,
      {"method.roles", "method.trains", "method.name"},
      "a group that trains both factors has no other one to turn to; expected fixed, or "
      "method.trains one");
  conflict_if(
      o.roles == Roles::Alternate && o.sync == SyncMode::Full, out,
      {"method.roles", "method.sync", "method.name"},
      "expected fixed, or method.sync only-learned, with-stale or only-b");
}

void check_ab(const MethodSetup& setup, const StatedLength& length, Conflicts& out) {
  const MethodOptions& o = setup.options;
  try {
    make_groups(o, setup.workers);
  } catch (const ConflictError& error) {
    out.push_back(error.conflict());
  }
  conflict_if(
      o.trains == Trains::Both && o.sync != SyncMode::OnlyLearned, out,
      {"method.sync", "method.trains", "method.name"},
      "where each group trains both factors, no factor is stale or frozen; expected "
      "only-learned, got {}",
      name_of(o.sync));
  conflict_if(
      o.full_rank_steps.unit == o.sync_every.unit && o.full_rank_steps.value >= o.sync_every.value,
      out, {"method.full_rank_steps", "method.sync_every", "method.name"},
      "expected less than method.sync_every ({}), got {}", print_duration(o.sync_every),
      print_duration(o.full_rank_steps));
  check_warmup("method.warmup_steps", o.warmup_steps, length, "factored phase", out);
  conflict_if(
      o.anneal_steps.value > 0 && std::string_view(linalg::kind_of(o.rank).key) != "ratio", out,
      {"method.anneal_steps", "method.rank.rule", "method.name"},
      "expected 0 where method.rank.rule is {}, which has no ratio to "
      "anneal, got {}",
      linalg::kind_of(o.rank).name, print_duration(o.anneal_steps));
  if (adapts(o)) {
    check_adapters(o, out);
  }
  check_full_phase(setup, out);
  check_outer(setup, out);
}

void check_ab_run(const MethodOptions& options, const RunLength& run, const nn::Model&) {
  const PhasePlan plan = make_phase_plan(options, run);
  ABT_CHECK(
      plan.warmup < run.steps, Config,
      "method.warmup_steps: a warm-up of {} steps leaves no factored phase in "
      "a run of {}",
      plan.warmup, run.steps);
  const std::int64_t last = ab_timeline(plan, run.steps).last_decomposition();
  ABT_CHECK(
      plan.anneal == 0 || plan.warmup + plan.anneal <= last, Config,
      "method.anneal_steps: expected at most {}, so that the last "
      "decomposition, after step {}, cuts to method.rank.ratio; got {}",
      std::max<std::int64_t>(0, last - plan.warmup), last, plan.anneal);
}

std::vector<std::string> ab_notes(const MethodSetup& setup, const RunLength& run) {
  const PhasePlan plan = make_phase_plan(setup.options, run);
  const Timeline timeline = ab_timeline(plan, run.steps);
  std::vector<std::string> out;
  if (timeline.count(Event::Synchronize) + timeline.count(Event::SynchronizeAndDecompose) +
          timeline.count(Event::AverageFactors) ==
      0) {
    out.push_back(formatted(
        "method.sync_every: a synchronization every {} steps, but only {} come "
        "after the warm-up: the groups meet only when the run ends",
        plan.interval, run.steps - plan.warmup));
  }
  return out;
}

std::string groups_text(const comm::Groups& groups, bool both) {
  std::vector<std::string> parts;
  for (int g = 0; g < groups.count; ++g) {
    const int first = g * groups.group_size;
    parts.push_back(formatted(
        "{} = {}{}",
        both                                     ? "AB"
        : groups.role_of(first) == comm::Role::A ? "A"
                                                 : "B",
        first, groups.group_size > 1 ? formatted("..{}", first + groups.group_size - 1) : ""));
  }
  if (parts.size() > 8) {
    parts.resize(8);
    parts.emplace_back("...");
  }
  return formatted(
      "{}{}{}: {}", groups.count, groups.count == 1 ? " group of " : " groups of ",
      groups.group_size, join(parts, ", "));
}

std::string ab_plan_text(const MethodSetup& setup, const RunLength& run) {
  const PhasePlan plan = make_phase_plan(setup.options, run);
  return row("groups",
             groups_text(
                 make_groups(setup.options, setup.workers), setup.options.trains == Trains::Both) +
                 (setup.options.roles == Roles::Alternate
                      ? "; after each synchronization, the other factor"
                      : "")) +
         row("phases",
             formatted(
                 "{}; every {} steps, a synchronization{}{}",
                 plan.warmup > 0         ? formatted("{} dense steps, then AB", plan.warmup)
                 : adapts(setup.options) ? "adapters from the first step on"
                                         : "AB from the first step on",
                 plan.interval,
                 plan.full_rank > 0 ? formatted(" and {} dense steps", plan.full_rank) : "",
                 setup.options.cut_first ? ""
                                         : "; the first AB phase is uncut and sends more per step "
                                           "than shown below")) +
         (plan.anneal > 0
              ? row("ranks", formatted(
                                 "from {:g}:1 down to those below in the {} steps after "
                                 "the warm-up, whose steps and synchronizations send more",
                                 setup.options.anneal_from, plan.anneal))
              : "");
}

}  // namespace

const MethodKind kAb = {
    .name = "ab",
    .make = make<AbTraining>,
    .timeline = ab_events,
    .traffic = ab_traffic,
    .traffic_rows = ab_rows,
    .add_fields = add_ab_fields,
    .factors_weights = true,
    .check = check_ab,
    .check_run = check_ab_run,
    .notes = ab_notes,
    .plan_text = ab_plan_text};

}  // namespace abtrain::methods
