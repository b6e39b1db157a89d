#include "methods/ab/phase.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace abtrain::methods {
namespace {

// The timeline as a user would draw it, written down without the function:
// step -> what happens after it.
std::map<std::int64_t, Switch> timeline(
    const PhasePlan& plan,
    std::int64_t steps) {
  std::map<std::int64_t, Switch> events;
  events[plan.warmup] = Switch::Decompose;
  const std::int64_t origin = plan.reference_anchor ? 0 : plan.warmup;
  for (std::int64_t sync = origin; sync <= steps; sync += plan.interval) {
    if (sync <= plan.warmup) {
      continue;
    }
    if (plan.full_rank == 0) {
      events[sync] = Switch::SyncAndDecompose;
    } else {
      events[sync] = Switch::Sync;
      events[sync + plan.full_rank] = Switch::Decompose;
    }
  }
  return events;
}

TEST(Phase, FollowsTheTimelineForAllSmallPlans) {
  for (const bool reference : {false, true}) {
    for (std::int64_t w = 0; w <= 7; ++w) {
      for (std::int64_t s = 1; s <= 7; ++s) {
        for (std::int64_t d = 0; d < s; ++d) {
          const PhasePlan plan{w, s, d, reference};
          const auto expected = timeline(plan, 40);
          Phase phase = Phase::Full;
          for (std::int64_t t = 0; t <= 40; ++t) {
            const Switch now = switch_after(plan, t, phase);
            const auto found = expected.find(t);
            ASSERT_EQ(
                now, found == expected.end() ? Switch::None : found->second)
                << "W " << w << " S " << s << " D " << d << " t " << t
                << " reference " << reference;
            if (now == Switch::Sync) {
              phase = Phase::Full;
            } else if (now != Switch::None) {
              phase = Phase::Ab;
            }
          }
        }
      }
    }
  }
}

// The jumps from switch to switch, and what they count, against single steps.
TEST(Phase, JumpsAgreeWithSingleSteps) {
  for (const bool reference : {false, true}) {
    for (std::int64_t w = 0; w <= 7; ++w) {
      for (std::int64_t s = 1; s <= 7; ++s) {
        for (std::int64_t d = 0; d < s; ++d) {
          const PhasePlan plan{w, s, d, reference};
          PhaseCounts wanted;
          Phase phase = Phase::Full;
          std::int64_t jump = next_switch(plan, -1, phase);
          for (std::int64_t t = 0; t <= 40; ++t) {
            if (t > 0) {
              ++(phase == Phase::Ab ? wanted.ab : wanted.full);
            }
            const Switch now = switch_after(plan, t, phase);
            ASSERT_EQ(now != Switch::None, t == jump)
                << "W " << w << " S " << s << " D " << d << " t " << t
                << " reference " << reference;
            if (now == Switch::None) {
              continue;
            }
            wanted.sync += now == Switch::Decompose ? 0 : 1;
            wanted.dense_cuts += now == Switch::Decompose ? 1 : 0;
            wanted.product_cuts += now == Switch::SyncAndDecompose ? 1 : 0;
            phase = now == Switch::Sync ? Phase::Full : Phase::Ab;
            wanted.switched_at = t;
            jump = next_switch(plan, t, phase);
          }
          const PhaseCounts n = count_phases(plan, 40);
          EXPECT_EQ(n.full, wanted.full);
          EXPECT_EQ(n.ab, wanted.ab);
          EXPECT_EQ(n.sync, wanted.sync);
          EXPECT_EQ(n.dense_cuts, wanted.dense_cuts);
          EXPECT_EQ(n.product_cuts, wanted.product_cuts);
          EXPECT_EQ(n.last, phase);
          EXPECT_EQ(n.switched_at, wanted.switched_at);
        }
      }
    }
  }
}

TEST(Phase, NothingHappensInTheWantedPhase) {
  const PhasePlan plan{4, 6, 2, false};
  EXPECT_EQ(switch_after(plan, 4, Phase::Ab), Switch::None);
  EXPECT_EQ(switch_after(plan, 10, Phase::Full), Switch::None);
  EXPECT_EQ(switch_after(plan, 12, Phase::Ab), Switch::None);
  EXPECT_EQ(switch_after(plan, 3, Phase::Full), Switch::None);
}

TEST(Phase, PlanReadsEpochsAndRefusesWhatCannotBe) {
  MethodOptions options;
  options.warmup_steps = Duration::epochs(0.5);
  options.sync_every = Duration::epochs(2);
  options.full_rank_steps = Duration::steps(3);
  const PhasePlan plan = make_phase_plan(options, {10, 1000});
  EXPECT_EQ(plan.warmup, 5);
  EXPECT_EQ(plan.interval, 20);
  EXPECT_EQ(plan.full_rank, 3);
  options.full_rank_steps = Duration::steps(20);
  try {
    make_phase_plan(options, {10, 1000});
    FAIL() << "D = S was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Config);
    EXPECT_STREQ(
        e.what(),
        "method.full_rank_steps: expected 0 .. sync_every - 1 = 19 steps; got "
        "20");
  }
}

TEST(Phase, SharesOfARunFitEveryLength) {
  MethodOptions options;
  options.warmup_steps = Duration::percent(28.8667);
  options.sync_every = Duration::percent(5.06);
  options.full_rank_steps = Duration::percent(0.4);
  const PhasePlan whole = make_phase_plan(options, {48, 15000});
  EXPECT_EQ(whole.warmup, 4330);
  EXPECT_EQ(whole.interval, 759);
  EXPECT_EQ(whole.full_rank, 60);
  const PhasePlan tiny = make_phase_plan(options, {48, 4});
  EXPECT_EQ(tiny.warmup, 1);
  EXPECT_EQ(tiny.interval, 1);
  EXPECT_EQ(tiny.full_rank, 0);
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
        ramped_rate(ramp, k, 1e-3, at_switch),
        std::min(1e-3, k * (at_switch - 1e-5) / 5));
  }
  EXPECT_DOUBLE_EQ(ramped_rate(ramp, 6, 1e-3, at_switch), 1e-3);
}

TEST(Ramp, NoneIsTheSchedule) {
  EXPECT_DOUBLE_EQ(ramped_rate({RampKind::None, 1e-5, 5}, 1, 1e-3, 1e-3), 1e-3);
}

}  // namespace
}  // namespace abtrain::methods
