// Workers of a control channel, each a thread of the test with a channel of its
// own, that meet over local communicators.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/socket.h"
#include "comm/control/channel.h"
#include "comm/control/meeting.h"
#include "comm/failure.h"
#include "comm/run_workers.h"
#include "comm/share.h"
#include "error_of.h"

namespace abtrain::comm {

// For what must come: as long as a test may last.
constexpr double kTimeout = 60;

// Delays of a worker that differ from seed to seed.
class Pace {
 public:
  Pace(int seed, int rank) : random_(static_cast<unsigned>(1000 * seed + rank)) {}
  int below(int end) {
    return static_cast<int>(random_() % static_cast<unsigned>(end));
  }
  void delay() {
    for (int n = below(8) == 0 ? below(6) : 0; n > 0; --n) {
      std::this_thread::yield();
    }
  }

 private:
  std::mt19937 random_;
};

struct Worker {
  Communicator& world;
  std::atomic<bool> wants_stop = false;
  std::atomic<int> told = 0;  // calls of on_failure
  std::atomic<int> gone = -1;
  std::atomic<bool> holds = false;  // on_failure waits until this is false
  std::string waited_for;  // in agree()
  std::unique_ptr<ControlChannel> channel;

  explicit Worker(Communicator& communicator, double send_timeout = 30) : world(communicator) {
    ControlOptions options;
    options.rank = world.rank();
    options.size = world.size();
    options.share = share_over(world);
    options.wanted = [this] { return wants_stop.load(); };
    options.on_failure = [this](const std::exception_ptr&, int who) {
      holds.wait(true);
      gone = who;
      ++told;
    };
    options.waiting = [this](const std::string& names) {
      waited_for = names.empty() ? waited_for : names;
    };
    options.connect_timeout = kTimeout;
    options.send_timeout = send_timeout;
    channel = std::make_unique<ControlChannel>(std::move(options));
  }
  int rank() const {
    return world.rank();
  }
};

// Runs the body on each worker. Afterwards all channels end, in any order, and
// every worker must have been told of a failure `told(rank)` times.
inline void run_control(
    int workers, const std::function<void(Worker&)>& body,
    const std::function<int(int rank)>& told = [](int) { return 0; }) {
  run_workers(workers, kTimeout, [&](Communicator& world) {
    Worker worker(world);
    body(worker);
    worker.channel.reset();
    EXPECT_EQ(worker.told, told(world.rank())) << "worker " << world.rank();
  });
}

// Of two workers, `rank` speaks by hand on its connection to the other.
inline void run_by_hand(
    int rank, const std::function<void(const Socket&)>& by_hand,
    const std::function<void(Worker&)>& body) {
  run_workers(2, kTimeout, [&](Communicator& world) {
    if (world.rank() == rank) {
      const auto met = wire::meet({rank, 2, share_over(world), kTimeout});
      by_hand(met.sockets[rank == 0 ? 1 : 0]);
      return;
    }
    Worker worker(world);
    body(worker);
  });
}

// The exit code and the message that an error stands for, ours or not; 0 and "" for none.
inline Thrown heard_of(const std::exception_ptr& error) {
  return error ? Thrown(exit_code_of(error), message_of(error)) : Thrown();
}

inline Thrown heard_of(const std::function<void()>& call) {
  try {
    call();
  } catch (...) {
    return heard_of(std::current_exception());
  }
  return {};
}

// Steps until it is told of a failure.
inline void step_until_told(Worker& worker, const std::string& part) {
  expect_error(
      [&] {
        for (std::int64_t t = 0; !worker.channel->stop_before(worker.rank(), t); ++t) {
          std::this_thread::yield();
        }
      },
      ErrorKind::PeerLost, {part});
}

}  // namespace abtrain::comm
