// Workers of a channel that send what no worker sends, or do not read.
#include <gtest/gtest.h>

#include <cstring>

#include "comm/control/wire.h"
#include "control_workers.h"

namespace abtrain::comm {
namespace {

using wire::Message;
using wire::Type;

std::string frame(std::uint32_t type, std::int32_t rank, std::int64_t value, std::uint64_t length) {
  std::string bytes(24, '\0');
  std::memcpy(bytes.data(), &type, 4);
  std::memcpy(bytes.data() + 4, &rank, 4);
  std::memcpy(bytes.data() + 8, &value, 8);
  std::memcpy(bytes.data() + 16, &length, 8);
  return bytes;
}

std::string frame(Type type, std::int32_t rank, std::int64_t value) {
  return frame(static_cast<std::uint32_t>(type), rank, value, 0);
}

// Frames that are wrong from whomever they come.
std::vector<std::string> wrong_frames() {
  const auto vote = static_cast<std::uint32_t>(Type::Vote);
  return {
      frame(15, 1, 0, 0),
      frame(0xffffffff, 1, 0, 0),
      frame(static_cast<std::uint32_t>(Type::Spent), 1, 20, 65),
      frame(vote, 1, 0, (1 << 20) + 1),
      frame(vote, 1, 0, ~std::uint64_t{0}),
      frame(static_cast<std::uint32_t>(Type::Bye), 1, 0, 1),
      frame(Type::Failed, -1, 69),
      frame(Type::Failed, 2, 69),
      frame(Type::Failed, 1 << 30, 69),
      frame(Type::Failed, 1, 0),
      frame(Type::Failed, 1, 130),
      frame(Type::Failed, 1, std::int64_t{69} << 32),
      frame(Type::Hello, 1, 0),
      frame(Type::Welcome, 0, 0),
      frame(Type::Proof, 1, 0)};
}

wire::Connections by_hand(Communicator& world) {
  return wire::meet({world.rank(), world.size(), share_over(world), kTimeout});
}

// Until the other end closes.
void drain(const Socket& socket) {
  while (wire::receive(socket, kTimeout)) {
  }
}

// Ends as a worker whose vote is under way.
void leave_in_order(const Socket& hub) {
  EXPECT_TRUE(wire::receive(hub, kTimeout));
  wire::send(hub, {Type::Bye, 1, 0});
  drain(hub);
}

// `rank` of two sends the bytes; the other must count it as lost.
void expect_lost_after(int rank, const std::string& bytes) {
  const auto send_bytes = [&](const Socket& socket) {
    socket.send_all(bytes, kTimeout);
    drain(socket);
  };
  run_by_hand(rank, send_bytes, [&](Worker& worker) {
    step_until_told(
        worker, formatted("worker {} on {} is gone: it sent an invalid", rank, host_name()));
    worker.channel.reset();  // ends the thread that tells
    EXPECT_EQ(worker.told, 1);
  });
}

TEST(ControlFrames, WhatNoWorkerSendsEndsItsConnection) {
  auto frames = wrong_frames();
  for (const std::string& more :
       {frame(Type::Ask, 1, 0), frame(Type::StopAt, 1, 7), frame(Type::Verdict, 1, 0),
        frame(Type::Shared, 1, 0), frame(Type::Begun, 1, -1), frame(Type::Spent, 1, -1),
        frame(Type::Bye, 1, -5), frame(Type::Vote, 1, 7), frame(Type::Vote, 1, -1),
        frame(Type::Vote, 0, 0),  // in another's name
        frame(Type::Failed, 0, 69)}) {
    frames.push_back(more);
  }
  for (const std::string& bytes : frames) {
    expect_lost_after(1, bytes);
  }
}

TEST(ControlFrames, WhatWorkerZeroDoesNotSendEndsItsConnection) {
  auto frames = wrong_frames();
  for (const std::string& more :
       {frame(Type::Stop, 0, 0), frame(Type::Begun, 0, 3), frame(Type::Vote, 0, 0),
        frame(Type::Bye, 0, -5), frame(Type::Spent, 0, 20), frame(Type::StopAt, 0, -1),
        frame(Type::Verdict, 2, 78), frame(Type::Verdict, 0, 3)}) {
    frames.push_back(more);
  }
  for (const std::string& bytes : frames) {
    expect_lost_after(0, bytes);
  }
}

TEST(ControlFrames, HalfAFrameHoldsUpNobody) {
  run_workers(3, kTimeout, [&](Communicator& world) {
    if (world.rank() == 1) {
      const auto met = by_hand(world);
      met.sockets[0].send_all(frame(Type::Stop, 1, 0).substr(0, 10), kTimeout);
      world.barrier();
      drain(met.sockets[0]);
      return;
    }
    Worker worker(world);
    world.barrier();
    if (world.rank() == 2) {
      worker.channel->fail(
          std::make_exception_ptr(Error(ErrorKind::Diverged, "loss is not finite")));
      return;
    }
    step_until_told(worker, "loss is not finite");
  });
}

TEST(ControlFrames, AWorkerThatDoesNotReadIsLost) {
  run_workers(2, kTimeout, [&](Communicator& world) {
    if (world.rank() == 1) {
      const auto met = by_hand(world);
      // Each answer is as long as both votes, and none is read.
      const Message vote{Type::Vote, 1, 0, std::string(500'000, 'x')};
      for (int n = 0; n < 100 && wire::send(met.sockets[0], vote); ++n) {
      }
      world.barrier();
      return;
    }
    Worker worker(world, /*send_timeout=*/0.5);
    expect_error(
        [&] {
          for (int n = 0; n < 100; ++n) {
            worker.channel->agree(nullptr, std::string(500'000, 'y'));
          }
        },
        ErrorKind::PeerLost, {"worker 1 on " + host_name() + " is gone"});
    worker.channel.reset();  // ends the thread that tells
    EXPECT_EQ(worker.told, 1);
    world.barrier();
  });
}

// Nothing but a warning would come of them.
TEST(ControlFrames, SecondsThatCannotBeAreIgnored) {
  const auto post_nonsense = [](const Socket& hub) {
    const std::string nan(sizeof(Spent), '\xff');
    for (const std::string& text : {std::string("short"), nan}) {
      wire::send(hub, {Type::Spent, 1, 20, text});
    }
    wire::send(hub, {Type::Vote, 1});
    leave_in_order(hub);
  };
  run_by_hand(1, post_nonsense, [](Worker& worker) {
    worker.channel->post(0, 20, {1});
    worker.channel->agree(nullptr);
    EXPECT_TRUE(worker.channel->spent().workers.empty());
    worker.channel->close();
  });
}

// Whatever somebody else's text holds, it is no second text.
TEST(ControlFrames, AnAgreementHasOneTextOfEachWorker) {
  const auto vote = [](const Socket& hub) {
    wire::send(hub, {Type::Vote, 1, 0, std::string("one\0two\nthree", 13)});
    leave_in_order(hub);
  };
  run_by_hand(1, vote, [](Worker& worker) {
    EXPECT_EQ(
        worker.channel->agree(nullptr, "mine"),
        (std::vector<std::string>{"mine", "one two\nthree"}));
    worker.channel->close();
  });
}

}  // namespace
}  // namespace abtrain::comm
