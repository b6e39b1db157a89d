// What workers tell each other of errors, and how a channel ends.
#include <gtest/gtest.h>

#include "control_workers.h"

namespace abtrain::comm {
namespace {

std::exception_ptr error(ErrorKind kind, const std::string& message) {
  return std::make_exception_ptr(Error(kind, message));
}

// What each of three workers throws, where worker i brings errors[i].
std::vector<Thrown> agreed(const std::vector<std::exception_ptr>& errors) {
  std::vector<Thrown> heard(errors.size());
  run_control(static_cast<int>(errors.size()), [&](Worker& worker) {
    const auto rank = static_cast<std::size_t>(worker.rank());
    heard[rank] = heard_of([&] { worker.channel->agree(errors[rank]); });
  });
  return heard;
}

TEST(Agree, ReturnsWhereAllHaveComeAndAreFine) {
  std::atomic<int> came = 0;
  run_control(3, [&](Worker& worker) {
    Pace pace(1, worker.rank());
    for (int n = 0; n < 100; ++n) {
      pace.delay();
      ++came;
      EXPECT_NO_THROW(worker.channel->agree(nullptr));
      EXPECT_GE(came, 3 * (n + 1));
    }
    worker.channel->close();
  });
}

TEST(Agree, OneErrorIsThrownOnAllWithItsKind) {
  for (int failed = 0; failed < 3; ++failed) {
    std::vector<std::exception_ptr> errors(3);
    errors[static_cast<std::size_t>(failed)] = error(ErrorKind::MissingInput, "no images");
    const auto heard = agreed(errors);
    for (int rank = 0; rank < 3; ++rank) {
      // Only worker 0 knows the hosts of all.
      const std::string who =
          formatted("worker {}{}", failed, rank == 0 ? " on " + host_name() : "");
      EXPECT_EQ(
          heard[static_cast<std::size_t>(rank)],
          Thrown(66, rank == failed ? "no images" : who + ": no images"));
    }
  }
}

TEST(Agree, OfSeveralErrorsTheLowestWorkersWins) {
  const auto heard = agreed(
      {nullptr, error(ErrorKind::DamagedData, "torn"), error(ErrorKind::Config, "no such key"),
       nullptr});
  const std::vector<Thrown> wanted = {
      {65, "worker 1 on " + host_name() + ": torn"},
      {65, "torn"},
      {65, "worker 1: torn"},
      {65, "worker 1: torn"}};
  EXPECT_EQ(heard, wanted);
}

TEST(Agree, AnErrorThatIsNotOursHasNoKindElsewhere) {
  const auto heard = agreed({nullptr, std::make_exception_ptr(std::out_of_range("index 12"))});
  const std::vector<Thrown> wanted = {
      {1, "worker 1 on " + host_name() + ": index 12"}, {1, "index 12"}};
  EXPECT_EQ(heard, wanted);
}

TEST(Agree, AnEndlessMessageIsCut) {
  const std::string message(3'000'000, 'x');
  const auto heard = agreed({nullptr, error(ErrorKind::Io, message)});
  EXPECT_EQ(heard[0].first, 74);
  EXPECT_GT(heard[0].second.size(), 1'000'000u);
  EXPECT_EQ(heard[1].second, message);
}

TEST(Agree, EndsWhereAWorkerIsGone) {
  run_control(
      3,
      [](Worker& worker) {
        if (worker.rank() == 1) {
          return;
        }
        expect_error(
            [&] { worker.channel->agree(nullptr); }, ErrorKind::PeerLost,
            {"worker 1 on " + host_name() + " is gone"});
      },
      [](int rank) { return rank == 1 ? 0 : 1; });
}

// As where a process is stopped. Worker 0 names it and tells the others.
TEST(Agree, NamesTheWorkersThatDoNotCome) {
  run_workers(3, kTimeout, [&](Communicator& world) {
    Worker worker(world);
    if (world.rank() == 0) {
      worker.channel->set_patience(0.2);
      expect_error(
          [&] {
            try {
              worker.channel->agree(nullptr);
            } catch (const TimedOut&) {
              worker.channel->fail(std::current_exception());
              throw;
            }
          },
          ErrorKind::PeerLost, {"agreement of all workers: waited 0.2 s for worker 1,"});
      EXPECT_EQ(worker.waited_for, "worker 1 on " + host_name());
    } else if (world.rank() == 2) {
      expect_error(
          [&] { worker.channel->agree(nullptr); }, ErrorKind::PeerLost,
          {"worker 0 on " + host_name(), "for worker 1,"});
    }
    world.barrier();
  });
}

// One message holds the texts of all workers.
TEST(Agree, GivesLongTextsWhole) {
  run_control(3, [](Worker& worker) {
    const auto text_of = [](int rank) {
      return std::string(700'000, static_cast<char>('a' + rank));
    };
    const auto all = worker.channel->agree(nullptr, text_of(worker.rank()));
    ASSERT_EQ(all.size(), 3U);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], text_of(rank));
    }
    worker.channel->close();
  });
}

// MPI_Finalize waits for all, so nobody may come to it long before worker 0.
TEST(ClosedChannel, WaitsForWorkerZeroToo) {
  std::atomic<bool> zero_came = false;
  run_control(3, [&](Worker& worker) {
    if (worker.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      zero_came = true;
    }
    worker.channel->close();
    worker.channel->wait_for_all();
    EXPECT_TRUE(zero_came);
  });
}

// Which of three workers fails, or goes without a word.
class Failing : public ::testing::TestWithParam<int> {
 protected:
  // How often each worker is told: the one that fails, not at all.
  static int told(int rank) {
    return rank == GetParam() ? 0 : 1;
  }
};
INSTANTIATE_TEST_SUITE_P(Worker, Failing, ::testing::Values(0, 2));

TEST_P(Failing, TellsTheOthersOnceAndWhy) {
  const std::string what =
      formatted("worker {} on {}: loss is not finite", GetParam(), host_name());
  run_control(
      3,
      [&](Worker& worker) {
        ControlChannel& channel = *worker.channel;
        EXPECT_EQ(channel.cause(), nullptr);
        worker.world.barrier();
        if (worker.rank() == GetParam()) {
          EXPECT_FALSE(channel.stop_before(worker.rank(), 0));
          channel.fail(error(ErrorKind::Diverged, "loss is not finite"));
          // The others end now, which is no news.
          worker.world.barrier();
          for (int n = 0; n < 200; ++n) {
            std::this_thread::yield();
          }
          EXPECT_EQ(channel.cause(), nullptr);
          return;
        }
        step_until_told(worker, what);
        EXPECT_EQ(heard_of(channel.cause()), Thrown(70, what));
        // Nor do echoes of it reach anybody.
        channel.fail(error(ErrorKind::PeerLost, "another worker failed"));
        worker.channel.reset();
        EXPECT_EQ(worker.gone, -1);
        worker.world.barrier();
      },
      told);
}

// What all have agreed on holds, whatever happens right after it.
TEST_P(Failing, AnAgreementOutlivesAFailureAfterIt) {
  for (int repetition = 0; repetition < 40; ++repetition) {
    run_control(
        3,
        [](Worker& worker) {
          EXPECT_EQ(worker.channel->agree({}, "text").size(), 3U);
          if (worker.rank() == GetParam()) {
            worker.channel->fail(error(ErrorKind::PeerLost, "too few are left"));
          } else {
            step_until_told(worker, "too few are left");
          }
        },
        told);
  }
}

TEST_P(Failing, AnEndWithoutAGoodbyeIsTold) {
  run_control(
      3,
      [](Worker& worker) {
        worker.holds = true;
        worker.world.barrier();
        if (worker.rank() == GetParam()) {
          worker.channel.reset();
          return;
        }
        const std::string who = formatted("worker {} on {}", GetParam(), host_name());
        step_until_told(worker, who + " is gone");
        EXPECT_EQ(heard_of(worker.channel->cause()).first, 69);
        // Seen by worker 0, or by all if it is the one that is gone, and known before on_failure.
        const bool sees = worker.rank() == 0 || GetParam() == 0;
        EXPECT_EQ(worker.channel->gone(), sees ? GetParam() : -1);
        worker.holds = false;
        worker.holds.notify_all();
        // Closing is no wait for those that will not come.
        worker.channel->close();
        worker.channel.reset();
        EXPECT_EQ(worker.gone, sees ? GetParam() : -1);
      },
      told);
}

TEST(FailingLater, OnlyTheFirstCauseIsTold) {
  run_control(
      4,
      [](Worker& worker) {
        const int rank = worker.rank();
        worker.world.barrier();
        if (rank != 3) {
          step_until_told(worker, "worker 3 on " + host_name() + " is gone");
        }
        // Worker 2 goes after the others have heard of worker 3.
        if (rank == 3) {
          worker.channel.reset();
        }
        worker.world.barrier();
        if (rank == 2) {
          worker.channel.reset();
        }
        worker.world.barrier();
        for (int n = 0; n < 200; ++n) {
          std::this_thread::yield();
        }
      },
      [](int rank) { return rank == 3 ? 0 : 1; });
}

TEST(Close, InOrderIsNoFailure) {
  for (int seed = 0; seed < 12; ++seed) {
    run_control(4, [&](Worker& worker) {
      Pace pace(seed, worker.rank());
      for (int t = 0; t < pace.below(10); ++t) {
        EXPECT_FALSE(worker.channel->stop_before(worker.rank(), t));
        pace.delay();
      }
      worker.channel->close();
      EXPECT_EQ(worker.channel->cause(), nullptr);
    });
  }
}

TEST(Close, AloneToo) {
  run_control(1, [](Worker& worker) {
    EXPECT_NO_THROW(worker.channel->agree(nullptr));
    EXPECT_FALSE(worker.channel->stop_before(0, 0));
    worker.wants_stop = true;
    EXPECT_TRUE(worker.channel->stop_before(0, 1));
    worker.channel->close();
  });
}

}  // namespace
}  // namespace abtrain::comm
