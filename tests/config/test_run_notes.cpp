// What a run says of settings that never take effect.
#include "config/run_notes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "toy_run.h"

namespace abtrain::config {
namespace {

constexpr RunLength kLength{100, 60};

std::string notes_of(const RunOptions& o) {
  return join(run_notes(o, kLength), "\n");
}

RunOptions ab(const linalg::RankRuleName rule) {
  RunOptions o = testing::toy_options(2, 1);  // cuts after 4, 13, 20, ...
  o.method.rank.rule = rule;
  return o;
}

TEST(RunNotes, AnOrdinaryRunHasNone) {
  EXPECT_EQ(notes_of(ab(linalg::RankRuleName::Sigma)), "");
  EXPECT_EQ(notes_of(ab(linalg::RankRuleName::Energy)), "");
  EXPECT_EQ(notes_of(ab(linalg::RankRuleName::Budget)), "");
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
      "method.sync_every: a synchronization every 100 steps, but only 56 come "
      "after the warm-up");
  o = ab(linalg::RankRuleName::Sigma);
  o.method.outer.momentum = 0.5;
  expect(o, "method.outer.name: auto is average for ab, which uses neither method.outer.lr ");
  o = ab(linalg::RankRuleName::Sigma);
  o.method.name = "local-sgd";
  o.method.sync_every = Duration::steps(56);
  expect(
      o,
      "method.sync_every: the first synchronization would be used after "
      "60 steps, but the run has 60: the workers meet only when it ends");
  o.method.name = "diloco";
  expect(o, "no outer step is taken");
  o.method.sync_every = Duration::steps(40);
  o.method.fragments = 2;
  o.method.delay = 17;
  expect(o, "1 of 2 fragments are not synchronized");
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
