#include "methods/ab/phase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/rows.h"
#include "base/text.h"
#include "error_of.h"
#include "methods/method_kind.h"

namespace abtrain::methods {
namespace {

// The events as a user would draw them, written down without the function:
// step -> what happens after it.
std::map<std::int64_t, Event> drawn(const PhasePlan& plan, std::int64_t steps) {
  std::map<std::int64_t, Event> events;
  events[plan.warmup] = Event::Decompose;
  const std::int64_t origin = plan.reference_anchor ? 0 : plan.warmup;
  for (std::int64_t sync = origin; sync <= 2 * steps + 60; sync += plan.interval) {
    if (sync <= plan.warmup) {
      continue;
    }
    if (plan.full_rank == 0) {
      events[sync] = plan.averages ? Event::AverageFactors : Event::SynchronizeAndDecompose;
    } else {
      events[sync] = Event::Synchronize;
      events[sync + plan.full_rank] = Event::Decompose;
    }
  }
  if (plan.averages) {
    // The synchronizations up to the first that finds the annealing at its end.
    std::vector<std::int64_t> early;
    for (const auto& [at, event] : events) {
      const std::int64_t before = early.empty() ? plan.warmup : early.back();
      const bool anneals = before - plan.warmup < plan.anneal;
      if (at > plan.warmup && (anneals || (early.empty() && !plan.cut_first))) {
        early.push_back(at);
      }
    }
    const auto count = std::ssize(early);
    const std::int64_t cuts = std::min<std::int64_t>(count, 16);
    for (std::int64_t k = 1; k <= cuts; ++k) {
      events[early[k * count / cuts - 1]] = Event::SynchronizeAndDecompose;
    }
  }
  events.erase(events.lower_bound(steps), events.end());  // the end takes its place
  return events;
}

struct PhasePlans : ::testing::TestWithParam<bool> {
  // Calls `check` with all small plans.
  static void each(const std::function<void(const PhasePlan&)>& check) {
    for (std::int64_t w = 0; w <= 7; ++w) {
      for (std::int64_t s = 1; s <= 7; ++s) {
        for (std::int64_t d = 0; d < s; ++d) {
          PhasePlan plan{w, s, d, GetParam()};
          SCOPED_TRACE(formatted("W {} S {} D {}", w, s, d));
          check(plan);
          plan.averages = d == 0;
          for (const std::int64_t anneal : {0, 1, 5, 20, 30, 60}) {
            plan.anneal = anneal;
            plan.cut_first = anneal != 5;
            check(plan);
          }
        }
      }
    }
  }
};

TEST_P(PhasePlans, TimelineHasTheEventsThatAUserWouldDraw) {
  each([](const PhasePlan& plan) {
    const std::int64_t steps = 40;
    const Timeline timeline = ab_timeline(plan, steps);
    const auto expected = drawn(plan, steps);
    std::map<Event, std::int64_t> counts;
    std::map<Over, std::int64_t> steps_over;
    Phase phase = Phase::Full;
    Timeline::Last last;
    for (std::int64_t t = 0; t <= steps; ++t) {
      if (t > 0) {
        ++steps_over[phase == Phase::Ab ? Over::Group : Over::World];
      }
      const Stretch ended = timeline.ending_after(t);
      const auto found = expected.find(t);
      ASSERT_EQ(ended.after, found != expected.end() ? found->second : Event::None) << t;
      if (found != expected.end()) {
        EXPECT_EQ(ended.phase, phase) << t;
        phase = ended.after == Event::Synchronize ? Phase::Full : Phase::Ab;
        ++counts[ended.after];
        last = {t, ended.after};
      }
      EXPECT_EQ(timeline.last_event(t).at, last.at) << t;
      EXPECT_EQ(timeline.last_event(t).event, last.event) << t;
    }
    for (const Event event :
         {Event::Decompose, Event::Synchronize, Event::SynchronizeAndDecompose,
          Event::AverageFactors}) {
      EXPECT_EQ(timeline.count(event), counts[event]);
    }
    for (const Over over : {Over::World, Over::Group, Over::Nobody}) {
      EXPECT_EQ(timeline.steps(over), steps_over[over]);
    }
    EXPECT_EQ(timeline.stretches.back().phase, phase);
    EXPECT_EQ(timeline.stretches.back().first, std::max<std::int64_t>(last.at, 0));
    EXPECT_EQ(timeline.stretches.back().after, Event::None);
  });
}

INSTANTIATE_TEST_SUITE_P(Anchors, PhasePlans, ::testing::Bool());

TEST(Phase, AWarmUpMayOutlastTheRun) {
  const Timeline timeline = ab_timeline({9, 4, 1}, 7);
  ASSERT_EQ(timeline.stretches.size(), 1U);
  EXPECT_EQ(timeline.stretches[0].steps, 7);
  EXPECT_EQ(timeline.stretches[0].phase, Phase::Full);
  EXPECT_EQ(timeline.ending_after(7).after, Event::None);
}

TEST(Phase, LongRunsAreShortLists) {
  const Timeline timeline = ab_timeline({5, 7, 3}, 1'000'000'000'005);
  EXPECT_LE(timeline.stretches.size(), 5U);
  EXPECT_EQ(timeline.count(Event::Synchronize), 1'000'000'000'000 / 7);
  EXPECT_EQ(timeline.steps(Over::World) + timeline.steps(Over::Group), 1'000'000'000'005);
}

// Of the warm-up, of an interval and of its dense steps.
using Lengths = std::array<std::int64_t, 3>;

Lengths lengths_of(const MethodOptions& options, const RunLength& run) {
  const PhasePlan plan = make_phase_plan(options, run);
  return {plan.warmup, plan.interval, plan.full_rank};
}

TEST(Phase, PlanReadsEpochsAndRefusesWhatCannotBe) {
  MethodOptions options;
  options.warmup_steps = Duration::epochs(0.5);
  options.sync_every = Duration::epochs(2);
  options.full_rank_steps = Duration::steps(3);
  EXPECT_EQ(lengths_of(options, {10, 1000}), (Lengths{5, 20, 3}));
  options.full_rank_steps = Duration::steps(20);
  EXPECT_EQ(
      error_of([&] {
        make_phase_plan(options, {10, 1000});
      }),
      Thrown(78, "method.full_rank_steps: expected 0 .. sync_every - 1 = 19 steps; got 20"));
}

// From 2:1 to 32:1 in 80 steps: twice the ratio every 20.
TEST(Phase, RatiosAreAnnealedGeometrically) {
  MethodOptions options;
  options.warmup_steps = Duration::steps(20);
  options.anneal_steps = Duration::percent(40);
  options.rank.rule = linalg::RankRuleName::Ratio;
  options.rank.ratio = 32;
  PhasePlan plan = make_phase_plan(options, {10, 200});
  EXPECT_EQ(plan.anneal, 80);
  const auto ratio = [&](std::int64_t t) { return rule_after(options, plan, t).ratio; };
  // A run by the clock may end within the warm-up.
  EXPECT_EQ(rule_after(options, {.warmup = 70}, 50).ratio, options.rank.ratio);
  EXPECT_DOUBLE_EQ(ratio(20), 2);
  EXPECT_DOUBLE_EQ(ratio(40), 4);
  EXPECT_DOUBLE_EQ(ratio(80), 16);
  EXPECT_EQ(ratio(100), 32);
  EXPECT_EQ(ratio(200), 32);
  // A model that is dense again before the end of the warm-up (another number of
  // workers) has the first ratio.
  EXPECT_DOUBLE_EQ(ratio(0), 2);
  options.anneal_from = 50;
  EXPECT_DOUBLE_EQ(ratio(20), 32);
  options.anneal_steps = {};
  plan = make_phase_plan(options, {10, 200});
  EXPECT_EQ(ratio(20), 32);
}

TEST(Phase, SharesOfARunFitEveryLength) {
  MethodOptions options;
  options.warmup_steps = Duration::percent(28.8667);
  options.sync_every = Duration::percent(5.06);
  options.full_rank_steps = Duration::percent(0.4);
  EXPECT_EQ(lengths_of(options, {48, 15000}), (Lengths{4330, 759, 60}));
  EXPECT_EQ(lengths_of(options, {48, 4}), (Lengths{1, 1, 0}));
  EXPECT_EQ(make_phase_plan(options, {48, 50}).full_rank, 1);
  options.full_rank_steps = Duration::percent(5);
  for (const std::int64_t steps : {1, 7, 20, 30, 100, 999}) {
    const PhasePlan plan = make_phase_plan(options, {48, steps});
    EXPECT_LT(plan.full_rank, plan.interval) << steps;
  }
}

TEST(Ramp, DefaultLength) {
  MethodOptions options;
  options.full_rank_steps = Duration::steps(10);
  EXPECT_EQ(make_ramp(options, {0, 110, 10, false}, {1, 1000}).steps, 10);
  EXPECT_EQ(make_ramp(options, {0, 110, 0, false}, {1, 1000}).steps, 20);
  EXPECT_EQ(make_ramp(options, {0, 12, 0, false}, {1, 1000}).steps, 12);
  EXPECT_EQ(make_ramp(options, {0, 12, 8, false}, {1, 1000}).steps, 4);
  options.rebound_steps = Duration::steps(0);
  EXPECT_EQ(make_ramp(options, {0, 110, 10, false}, {1, 1000}).steps, 0);
}

TEST(Ramp, LinearClimbsFromStartToTheSchedule) {
  const Ramp ramp{RampKind::Linear, 1e-5, 4};
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 1, 1e-3, 1e-3), 1e-5);
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 3, 1e-3, 1e-3), 1e-5 + 99e-5 / 2);
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 5, 1e-3, 1e-3), 1e-3);
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 500, 7e-4, 1e-3), 7e-4);
  // Never above the schedule, however low that is.
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 1, 1e-6, 1e-3), 1e-6);
}

TEST(Ramp, ReferenceIsTheAuthors) {
  const Ramp ramp{RampKind::Reference, 1e-5, 5};
  const double at_switch = 2e-3;
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 1, 1e-3, at_switch), 1e-5);
  for (int k = 2; k <= 5; ++k) {
    EXPECT_DOUBLE_EQ(
        ramped_rate(ramp, k, 1e-3, at_switch), std::min(1e-3, k * (at_switch - 1e-5) / 5));
  }
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 6, 1e-3, at_switch), 1e-3);
}

TEST(Ramp, NoneIsTheSchedule) {
  EXPECT_DOUBLE_EQ(ramped_rate({RampKind::None, 1e-5, 5}, 1, 1e-3, 1e-3), 1e-3);
}

// What a run of AB-training says of itself before it trains.
struct Said {
  MethodOptions options;
  compress::ReducerOptions reducer;
  int workers = 4;
  RunLength run{10, 60};

  Said() {
    options.warmup_steps = Duration::steps(4);
    options.sync_every = Duration::steps(7);
    options.full_rank_steps = Duration::steps(2);
  }
  MethodSetup setup() const {
    return {options, reducer, workers};
  }
  std::string plan() const {
    return kind_of(options).plan_text(setup(), run);
  }
  std::string notes() const {
    return join(kind_of(options).notes(setup(), run), "\n");
  }
  std::string refusal() const {
    const auto model = nn::make_model({}, {1, 8, 8, 4});
    return error_of([&] { kind_of(options).check_run(options, run, *model); }).second;
  }
};

TEST(AbPlan, NamesGroupsAndPhases) {
  Said said;
  EXPECT_EQ(
      said.plan(),
      row("groups", "2 groups of 2: A = 0..1, B = 2..3") +
          row("phases",
              "4 dense steps, then AB; every 7 steps, a synchronization and 2 dense steps"));
  said.options.sync = SyncMode::OnlyB;
  said.options.group_size = 4;
  said.options.warmup_steps = {};
  said.options.full_rank_steps = {};
  said.options.cut_first = false;
  EXPECT_EQ(
      said.plan(), row("groups", "1 group of 4: B = 0..3") +
                       row("phases",
                           "AB from the first step on; every 7 steps, a synchronization; the "
                           "first AB phase is uncut and sends more per step than shown below"));
  said = {};
  said.options.trains = Trains::Both;
  said.options.group_size = 1;
  said.options.anneal_steps = Duration::steps(20);
  said.workers = 8;
  const std::string eight = "AB = 0, AB = 1, AB = 2, AB = 3, AB = 4, AB = 5, AB = 6, AB = 7";
  EXPECT_TRUE(said.plan().starts_with(row("groups", "8 groups of 1: " + eight))) << said.plan();
  EXPECT_TRUE(said.plan().ends_with(
      row("ranks",
          "from 2:1 down to those below in the 20 steps after the warm-up, whose steps and "
          "synchronizations send more")))
      << said.plan();
  said.workers = 9;
  EXPECT_TRUE(said.plan().starts_with(row("groups", "9 groups of 1: " + eight + ", ...")));
}

TEST(AbPlan, NotesSayWhatNeverHappens) {
  Said said;
  EXPECT_EQ(said.notes(), "");
  said.options.full_rank_steps = {};
  EXPECT_EQ(said.notes(), "");
  said.options.trains = Trains::Both;
  EXPECT_EQ(said.notes(), "");
  said = {};
  said.run.steps = 10;
  EXPECT_EQ(
      said.notes(),
      "method.sync_every: a synchronization every 7 steps, but only 6 come after the warm-up: the "
      "groups meet only when the run ends");
}

TEST(AbPlan, RefusesRunsThatEndBeforeTheirRanks) {
  Said said;
  said.options.full_rank_steps = {};
  // The synchronization after 60 steps ends the run and cuts nothing.
  said.options.anneal_steps = Duration::steps(49);
  EXPECT_EQ(said.refusal(), "");
  said.options.anneal_steps = Duration::steps(50);
  EXPECT_EQ(
      said.refusal(),
      "method.anneal_steps: expected at most 49, so that the last decomposition, after step 53, "
      "cuts to method.rank.ratio; got 50");
  said.options.anneal_steps = {};
  said.options.warmup_steps = Duration::epochs(6);
  EXPECT_EQ(
      said.refusal(),
      "method.warmup_steps: a warm-up of 60 steps leaves no factored phase in a run of 60");
}

}  // namespace
}  // namespace abtrain::methods
