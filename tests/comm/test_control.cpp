// A stop on request: all workers end before the same step, at whatever speeds
// they run.
#include "comm/control/control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "comm/control/wire.h"
#include "control_workers.h"

namespace abtrain::comm {
namespace {

// Far beyond any step at which a worker of these tests could stop.
constexpr std::int64_t kNever = 100'000'000;

// Steps until the stop; -1 where it never came.
std::int64_t run_to_stop(
    Control& control, int worker, const std::function<void(std::int64_t)>& step) {
  for (std::int64_t t = 0; t < kNever; ++t) {
    if (control.stop_before(worker, t)) {
      return t;
    }
    step(t);
  }
  return -1;
}

void expect_all_equal(const std::vector<std::int64_t>& stops) {
  for (const std::int64_t stop : stops) {
    EXPECT_EQ(stop, stops.front());
  }
  EXPECT_GE(stops.front(), 0);
}

TEST(LocalControl, NobodyStopsUnasked) {
  LocalControl control(2, [] { return false; });
  for (int t = 0; t < 100; ++t) {
    EXPECT_FALSE(control.stop_before(0, t));
    EXPECT_FALSE(control.stop_before(1, t));
  }
}

TEST(LocalControl, AllReachTheFarthestAndNobodyPassesIt) {
  bool wanted = false;
  LocalControl control(3, [&] { return wanted; });
  for (int t = 0; t <= 5; ++t) {
    EXPECT_FALSE(control.stop_before(0, t));
  }
  EXPECT_FALSE(control.stop_before(1, 0));
  wanted = true;
  for (const int worker : {1, 2}) {
    for (int t = worker == 1 ? 1 : 0; t < 6; ++t) {
      EXPECT_FALSE(control.stop_before(worker, t)) << worker << " at " << t;
    }
    EXPECT_TRUE(control.stop_before(worker, 6));
  }
  EXPECT_TRUE(control.stop_before(0, 6));
}

TEST(LocalControl, TheFarthestMayNoticeItItself) {
  bool wanted = false;
  LocalControl control(2, [&] { return wanted; });
  EXPECT_FALSE(control.stop_before(0, 7));
  wanted = true;
  EXPECT_TRUE(control.stop_before(0, 8));
  EXPECT_FALSE(control.stop_before(1, 7));
  EXPECT_TRUE(control.stop_before(1, 8));
}

TEST(LocalControl, ThreadsStopAtOneStep) {
  for (int seed = 0; seed < 12; ++seed) {
    std::atomic<bool> wanted = false;
    LocalControl control(4, [&] { return wanted.load(); });
    std::vector<std::int64_t> stops(4);
    run_workers(4, kTimeout, [&](Communicator& world) {
      const int rank = world.rank();
      Pace pace(seed, rank);
      const int ask_at = pace.below(12);
      stops[static_cast<std::size_t>(rank)] = run_to_stop(control, rank, [&](std::int64_t t) {
        if (rank == seed % 4 && t == ask_at) {
          wanted = true;
        }
        pace.delay();
      });
    });
    expect_all_equal(stops);
  }
}

TEST(LocalControl, KnowsTheLatestThatAllHavePosted) {
  LocalControl control(2, [] { return false; });
  const auto of = [](double seconds) { return Spent{seconds}; };
  EXPECT_TRUE(control.spent().workers.empty());
  control.post(1, 20, of(1));
  control.post(1, 40, of(2));
  control.post(1, 60, of(3));
  EXPECT_TRUE(control.spent().workers.empty());
  control.post(0, 40, of(4));
  EXPECT_EQ(control.spent().steps, 40);
  EXPECT_EQ(control.spent().workers, (std::vector<Spent>{of(4), of(2)}));
  control.post(0, 20, of(9));  // late
  EXPECT_EQ(control.spent().steps, 40);
  control.post(0, 60, of(5));
  EXPECT_EQ(control.spent().steps, 60);
  // What the other never posts does not pile up, and does no harm.
  for (std::int64_t t = 61; t < 100'000; ++t) {
    control.post(1, t, of(7));
  }
  control.post(0, 99'999, of(8));
  EXPECT_EQ(control.spent().workers, (std::vector<Spent>{of(8), of(7)}));
}

TEST(ControlChannel, WorkerZeroLearnsWhatOthersPost) {
  run_control(3, [](Worker& worker) {
    worker.channel->post(worker.rank(), 20, {1.5 + worker.rank()});
    worker.channel->agree(nullptr);  // comes after it on the same connections
    const AllSpent all = worker.channel->spent();
    if (worker.rank() == 0) {
      EXPECT_EQ(all.steps, 20);
      EXPECT_EQ(all.workers, (std::vector<Spent>{{1.5}, {2.5}, {3.5}}));
    } else {
      EXPECT_TRUE(all.workers.empty());
    }
    worker.channel->close();
  });
}

// Workers, and every how many steps they wait for each other (0: never).
class Stop : public ::testing::TestWithParam<std::tuple<int, int>> {};
INSTANTIATE_TEST_SUITE_P(
    Workers, Stop, ::testing::Combine(::testing::Values(1, 2, 3, 5), ::testing::Values(0, 1, 3)),
    [](const auto& test) {
      return formatted("{}MeetEvery{}", std::get<0>(test.param), std::get<1>(test.param));
    });

TEST_P(Stop, AllStopAtOneStepWhoeverAsks) {
  const auto [workers, meet_every] = GetParam();
  for (int seed = 0; seed < 12; ++seed) {
    std::vector<std::int64_t> stops(static_cast<std::size_t>(workers));
    std::atomic<bool> asked = false;
    run_control(workers, [&](Worker& worker) {
      Pace pace(seed, worker.rank());
      const int ask_at = pace.below(12);
      // One asks, or all do, each at a step of its own.
      const bool asks = seed % (workers + 1) == worker.rank() || seed % (workers + 1) == workers;
      stops[static_cast<std::size_t>(worker.rank())] =
          run_to_stop(*worker.channel, worker.rank(), [&](std::int64_t t) {
            if (asks && t == ask_at) {
              worker.wants_stop = true;
              asked = true;
            }
            pace.delay();
            if (meet_every > 0 && t % meet_every == 0) {
              worker.world.barrier();
            }
            pace.delay();
          });
      worker.channel->close();
    });
    expect_all_equal(stops);
    EXPECT_TRUE(asked);
  }
}

TEST(StopOrder, WhoHasAnsweredBeginsNothingUntilTheDecision) {
  // Worker 1 is slow to answer.
  std::atomic<std::int64_t> decided = -1;
  const auto answer_late = [&](const Socket& hub) {
    wire::send(hub, {wire::Type::Stop, 1});
    const auto ask = wire::receive(hub);
    ASSERT_TRUE(ask);
    EXPECT_EQ(ask->type, wire::Type::Ask);
    for (int n = 0; n < 200; ++n) {
      std::this_thread::yield();
    }
    wire::send(hub, {wire::Type::Begun, 1, 0});
    const auto stop_at = wire::receive(hub);
    ASSERT_TRUE(stop_at);
    EXPECT_EQ(stop_at->type, wire::Type::StopAt);
    decided = stop_at->value;
    wire::send(hub, {wire::Type::Bye, 1, 0});
  };
  run_by_hand(1, answer_late, [&](Worker& worker) {
    const std::int64_t stop = run_to_stop(*worker.channel, 0, [](std::int64_t) {});
    worker.channel->close();
    EXPECT_EQ(stop, decided);
    EXPECT_EQ(worker.told, 0);
  });
}

TEST(StopOrder, AHeldWorkerHearsThatAnotherIsGone) {
  const auto ask_and_go = [](const Socket& hub) {
    wire::send(hub, {wire::Type::Stop, 1});
    EXPECT_TRUE(wire::receive(hub));
  };
  run_by_hand(1, ask_and_go, [](Worker& worker) {
    step_until_told(worker, "worker 1 on " + host_name() + " is gone");
  });
}

TEST(StopOrder, AWorkerThatHasFinishedHoldsUpNobody) {
  constexpr std::int64_t kSteps = 10;
  std::atomic<bool> gone = false;
  run_control(3, [&](Worker& worker) {
    for (std::int64_t t = 0; t < kSteps; ++t) {
      if (t == 5 && worker.rank() == 1) {
        while (!gone) {
          std::this_thread::yield();
        }
        worker.wants_stop = true;
      }
      // All that worker 2 has done is more than anybody else had begun.
      EXPECT_FALSE(worker.channel->stop_before(worker.rank(), t));
    }
    worker.channel->close();
    if (worker.rank() == 2) {
      worker.channel.reset();
      gone = true;
    }
  });
}

TEST(StopOrder, AWorkerThatHasNotBegunYetReachesTheStep) {
  // As after a checkpoint: steps do not begin at 0.
  std::vector<std::int64_t> stops(3);
  std::atomic<int> stopped = 0;
  run_control(3, [&](Worker& worker) {
    const int rank = worker.rank();
    worker.wants_stop = rank == 1;
    while (rank == 2 && stopped < 2) {
      std::this_thread::yield();
    }
    std::int64_t t = 1000;
    while (t < kNever && !worker.channel->stop_before(rank, t)) {
      ++t;
    }
    stops[static_cast<std::size_t>(rank)] = t;
    ++stopped;
    worker.channel->close();
  });
  expect_all_equal(stops);
  EXPECT_LT(stops.front(), kNever);
}

TEST(ShareOverAChannel, GivesWorkerZerosBytesToAll) {
  run_control(3, [](Worker& worker) {
    for (const std::size_t bytes : {3, 0, 1 << 20, 1}) {
      std::string text(bytes, static_cast<char>('a' + worker.rank()));
      worker.channel->share(text.data(), bytes);
      EXPECT_EQ(text, std::string(bytes, 'a'));
    }
    worker.channel->close();
  });
}

TEST(ShareOverAChannel, EndsWhereWorkerZeroIsGone) {
  run_control(
      2,
      [](Worker& worker) {
        if (worker.rank() == 1) {
          int value = 0;
          expect_error(
              [&] { worker.channel->share(&value, sizeof(value)); }, ErrorKind::PeerLost,
              {"worker 0"});
        }
      },
      [](int rank) { return rank; });
}

TEST(ShareOverAChannel, OfAnotherSizeIsRefused) {
  run_control(2, [](Worker& worker) {
    std::int64_t value = 0;
    if (worker.rank() == 0) {
      worker.channel->share(&value, 4);
    } else {
      expect_error(
          [&] { worker.channel->share(&value, 8); }, ErrorKind::Config,
          {"expected 8 bytes from worker 0, got 4"});
    }
    worker.channel->close();
  });
}

}  // namespace
}  // namespace abtrain::comm
