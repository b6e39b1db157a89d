// What a run says of settings that never take effect, and of cuts that add up.
#include "config/run_notes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "methods/ab/phase.h"
#include "toy_run.h"

namespace abtrain::config {
namespace {

constexpr RunLength kLength{100, 60};

std::string notes_of(const RunOptions& o, const RunLength& length = kLength) {
  return join(run_notes(o, length), "\n");
}

RunOptions ab(const linalg::RankRuleName rule) {
  RunOptions o = testing::toy_options(2, 1);  // cuts after 4, 13, 20, ...
  o.method.rank.rule = rule;
  return o;
}

TEST(RunNotes, AnOrdinaryRunHasNone) {
  EXPECT_EQ(notes_of(ab(linalg::RankRuleName::Sigma)), "");
  EXPECT_EQ(notes_of(ab(linalg::RankRuleName::Budget)), "");
}

// Counted step by step, as AbTraining takes them.
TEST(RunNotes, EnergyCompoundsOverTheCutsOfTheRun) {
  for (const std::int64_t full_rank : {0, 2}) {
    for (const std::int64_t steps : {4, 10, 13, 60, 61}) {
      for (const auto sync :
           {methods::SyncMode::OnlyLearned, methods::SyncMode::Full}) {
        for (const bool cut_first : {true, false}) {
          RunOptions o = ab(linalg::RankRuleName::Energy);
          o.method.rank.keep = 0.5;
          o.method.full_rank_steps = Duration::steps(full_rank);
          o.method.sync = sync;
          o.method.cut_first = cut_first;
          o.method.warmup_steps = Duration::steps(3);
          const methods::Timeline timeline = methods::ab_timeline(
              methods::make_phase_plan(o.method, {8, steps}), steps);
          methods::Phase phase = methods::Phase::Full;
          std::int64_t cuts = cut_first ? 0 : -1;
          bool switched = false;  // after the last step
          for (std::int64_t t = 0; t <= steps; ++t) {
            const methods::Stretch* ended = timeline.ending_after(t);
            switched = ended != nullptr;
            if (switched && ended->after == methods::Event::Synchronise) {
              phase = methods::Phase::Full;
            } else if (switched) {
              phase = methods::Phase::Ab;
              ++cuts;
            }
          }
          if (phase == methods::Phase::Full ||
              (sync == methods::SyncMode::Full && !switched)) {
            ++cuts;  // at the end
          }
          EXPECT_EQ(methods::count_cuts(o.method, timeline), cuts);
          const std::string said = formatted("keep: 0.5 over {} decomp", cuts);
          EXPECT_EQ(
              notes_of(o, {8, steps}).find(said) != std::string::npos, cuts > 1)
              << said;
        }
      }
    }
  }
}

TEST(RunNotes, SaysWhatIsLeft) {
  RunOptions o = ab(linalg::RankRuleName::Energy);
  o.method.rank.keep = 0.9;
  o.method.warmup_steps = Duration::steps(10);
  o.method.sync_every = Duration::steps(100);
  // After 10, 120, 220, ..., 1620 steps, and at the end: 18 in all.
  o.method.full_rank_steps = Duration::steps(10);
  const std::string notes = notes_of(o, {100, 1715});
  EXPECT_NE(
      notes.find("keep: 0.9 over 18 decompositions keeps as little as 0.9^18 = "
                 "15 % of a weight's energy"),
      std::string::npos)
      << notes;
  o.method.rank.keep = 1;
  EXPECT_EQ(notes_of(o, {100, 1715}), "");
}

TEST(RunNotes, NameWhatNeverHappens) {
  const auto expect = [](const RunOptions& o, const std::string& part) {
    const std::string notes = notes_of(o);
    EXPECT_NE(notes.find(part), std::string::npos) << part << "\n" << notes;
    EXPECT_EQ(std::ranges::count(notes, '\n'), 0) << notes;
  };
  RunOptions o = ab(linalg::RankRuleName::Sigma);
  o.method.sync_every = Duration::epochs(1);
  expect(
      o,
      "method.sync_every: a synchronisation every 100 steps, but only 56 come "
      "after the warm-up");
  o = ab(linalg::RankRuleName::Sigma);
  o.method.full_phase.sync_every = 5;
  expect(o, "method.full_phase.sync_every: an average every 5 dense steps");
  o = ab(linalg::RankRuleName::Sigma);
  o.method.name = "local-sgd";
  o.method.sync_every = Duration::steps(56);
  expect(
      o,
      "method.sync_every: the first synchronisation would be used after "
      "60 steps, but the run has 60: the workers meet only when it ends");
  o.method.name = "diloco";
  expect(o, "no outer step is taken");
  o.method.sync_every = Duration::steps(40);
  o.method.fragments = 2;
  o.method.delay = 17;
  expect(o, "1 of 2 fragments are not synchronised");
  o = ab(linalg::RankRuleName::Sigma);
  o.schedule.warmup_steps = Duration::epochs(1);
  expect(o, "schedule.warmup_steps: 100 of the run's 60 steps");
  o = ab(linalg::RankRuleName::Sigma);
  o.reducer.name = "topk";
  o.reducer.dense_steps = 60;
  expect(o, "reducer.dense_steps: 60 of the run's 60 steps: nothing is");
  o = ab(linalg::RankRuleName::Sigma);
  o.checkpoint.every = Duration::steps(61);
  expect(o, "checkpoint.every: 61 of the run's 60 steps");
  o = ab(linalg::RankRuleName::Sigma);
  o.order.name = "cd-grab";
  expect(o, "order.name: cd-grab");
}

}  // namespace
}  // namespace abtrain::config
