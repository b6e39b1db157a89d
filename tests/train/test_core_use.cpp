// Whether a run lacked cores, and by whose doing.
#include "train/core_use.h"

#include <gtest/gtest.h>

#include <vector>

#include "error_of.h"

namespace abtrain::train {
namespace {

// Workers that all had the same share of a core for 10 s, while their processes kept so many busy.
std::vector<CoreTime> workers(
    int count, double share, double busy, double cores, double first_core = 0) {
  return {static_cast<std::size_t>(count), CoreTime{10, 10 * share, 10 * busy, cores, first_core}};
}

struct Case {
  const char* what;
  std::vector<CoreTime> times;
  int threads;
  int in_process;
  bool beside_others;
};

TEST(CoreUse, OnlyOtherProgramsAreWorthAWarning) {
  std::vector<CoreTime> bound;  // processes with a core of their own, one of which is taken
  for (int i = 0; i < 4; ++i) {
    bound.push_back(workers(1, i == 1 ? 0.5 : 1, i == 1 ? 0.5 : 1, 1, i).front());
  }
  std::vector<CoreTime> all_taken = bound;
  for (CoreTime& time : all_taken) {
    time.thread = time.process = 5;
  }
  std::vector<CoreTime> moment = workers(2, 0.5, 1, 2);
  for (CoreTime& time : moment) {
    time = {time.wall / 50, time.thread / 50, time.process / 50, time.cores, 0};
  }
  const std::vector<Case> cases = {
      {"two workers beside two programs, for a moment", moment, 1, 2, false},
      {"a core each", workers(2, 0.98, 1.97, 2), 1, 2, false},
      {"idle cores", workers(1, 0.99, 1, 8), 1, 1, false},
      {"four workers on two cores", workers(4, 0.5, 2, 2), 1, 4, false},
      {"the same, beside two other programs", workers(4, 0.33, 1.33, 2), 1, 4, true},
      {"two workers beside two programs", workers(2, 0.5, 1, 2), 1, 2, true},
      {"two threads beside two programs", workers(1, 0.5, 1, 2), 2, 1, true},
      {"threads that decode images", workers(2, 0.6, 2, 2), 1, 2, false},
      {"four processes on two cores", workers(4, 0.5, 0.5, 2), 1, 1, false},
      {"four processes beside two programs", workers(4, 0.33, 0.33, 2), 1, 1, true},
      {"a quota of one and a half cores", workers(2, 0.75, 1.5, 1.5), 1, 2, false},
      {"bound processes", workers(1, 0.99, 1, 1, 3), 1, 1, false},
      {"one of four bound processes", bound, 1, 1, true},
      {"all bound processes", all_taken, 1, 1, true}};
  for (const Case& one : cases) {
    const auto use = core_use(one.times, {}, one.threads, one.in_process);
    ASSERT_TRUE(use) << one.what;
    EXPECT_EQ(use->beside_others(), one.beside_others) << one.what;
  }
}

TEST(CoreUse, NamesTheHostThatLacksThemMost) {
  std::vector<CoreTime> times = workers(2, 1, 1, 2);
  times.push_back(workers(1, 0.27, 0.27, 2).front());
  times.push_back(times.back());
  const auto use = core_use(times, {"a", "a", "b", "b"}, 1, 1);
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->beside_others());
  EXPECT_NEAR(use->share, 0.27, 1e-12);
  expect_has(use->warning(), "workers on b had a core for 27 % of their compute time: ");
  expect_has(
      core_use(times, {"a", "a", "a", "a"}, 1, 1)->warning(), "workers had a core for 64 % of");
}

TEST(CoreUse, OnAGpuNothingIsMeasured) {
  CoreWatch watch(false);
  watch.begin();
  watch.end();
  EXPECT_EQ(watch.time().wall, 0);
  EXPECT_FALSE(core_use({watch.time()}, {}, 1, 1));
  CoreWatch measures(true);
  measures.begin();
  measures.end();
  EXPECT_GT(measures.time().wall, 0);
  EXPECT_GT(measures.time().cores, 0);
}

}  // namespace
}  // namespace abtrain::train
