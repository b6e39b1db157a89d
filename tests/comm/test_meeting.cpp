// How processes meet, and who cannot hinder them.
#include "meeting_workers.h"

#include <cstring>

namespace abtrain::comm::wire {
namespace {

TEST(Meet, WorkerZeroThatDoesNotListen) {
  const int port = Socket::listen().port();  // and closed again
  expect_unmet(
      join_at(meeting_at(port)),
      {"worker 1 on " + host_name(), formatted("could not reach worker 0 at port {}", port),
       "within 0.3 s"});
}

TEST(Meet, AHostThatTakesConnectionsAndSaysNothing) {
  const Socket stranger = Socket::listen();
  expect_unmet(join_at(meeting_at(stranger.port())), {"could not reach worker 0"});
}

TEST(Meet, AHostThatDripsBytes) {
  const Socket stranger = Socket::listen();
  const std::jthread drips([&](const std::stop_token& end) {
    stranger.wait_readable(Deadline(kTimeout));
    const Socket socket = stranger.accept();
    while (!end.stop_requested() && socket.send_all({"\0", 1}, kSoon)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const Stopwatch watch;
  expect_unmet(join_at(meeting_at(stranger.port())), {});
  EXPECT_LT(watch.seconds(), kAtOnce);
}

TEST(Meet, WorkersThatDoNotCome) {
  Board board;
  expect_unmet(
      start_hub(board, 4, {}, kSoon),
      {"3 of 4 workers did not connect to worker 0 on ", "within 0.3 s: ranks 1, 2, 3"});
}

// Worker 0 waits for others, and another worker for a worker 0 that does not listen.
TEST(Meet, ACheckEndsTheWait) {
  for (const int rank : {0, 1}) {
    Board board;
    MeetOptions options{rank, 2, rank == 0 ? board.writer() : [](void* data, std::size_t) {
                          *static_cast<Meeting*>(data) = meeting_at(1);
                        }};
    options.check = [calls = 0]() mutable { ABT_CHECK(++calls < 3, PeerLost, "worker 1 is lost"); };
    expect_unmet(start(options), {"worker 1 is lost"});
  }
}

TEST(Meet, AForgedRecord) {
  for (const int byte : {0, 0x7f, 0xff}) {
    Meeting meeting;
    std::memset(static_cast<void*>(&meeting), byte, sizeof(meeting));
    expect_unmet(join_at(meeting), {"received no valid address for worker 0"});
  }
}

TEST(Meet, StrangersDoNotTakeAWorkersPlace) {
  Board board;
  auto hub = start_hub(board, 2);
  const Meeting meeting = board.read();
  // One says nothing, one talks of something else, one is of another run, one
  // announces more than it may, one has no greeting.
  const Socket silent = connect_to(meeting);
  const Socket other = connect_to(meeting);
  EXPECT_TRUE(other.send_all("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1));
  expect_closed(other);
  const Socket lost = connect_to(meeting);
  Message hello = hello_of(meeting, 1, 2, false, 'x');
  ++hello.value;
  expect_closed_by(lost, hello);
  const Socket long_winded = connect_to(meeting);
  std::string header(24, '\0');
  header[4] = 1;
  std::memcpy(header.data() + 8, &meeting.token, sizeof(meeting.token));
  header[20] = 1;  // 4 GiB follow
  EXPECT_TRUE(long_winded.send_all(header, 1));
  expect_closed(long_winded);
  const Socket wordless = connect_to(meeting);
  expect_closed_by(wordless, {Type::Hello, 1, meeting.token, "short"});
  expect_met(hub, start_worker(board, 1, 2));
}

std::vector<Socket> strangers(const Meeting& meeting, int number) {
  std::vector<Socket> sockets;
  for (int n = 0; n < number; ++n) {
    sockets.push_back(connect_to(meeting));
  }
  return sockets;
}

// Each byte comes within any limit for one, all of a header never do.
void drip(const Meeting& meeting, const std::stop_token& end, std::vector<Socket>& sockets) {
  while (!end.stop_requested()) {
    for (Socket& socket : sockets) {
      if (!socket.send_all({"\0", 1}, kSoon)) {
        socket = Socket::connect(kHost, meeting.port, kSoon);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  }
}

TEST(Meet, DrippingStrangersHoldUpNobody) {
  Board board;
  auto hub = start_hub(board, 2, {}, 3);
  auto sockets = strangers(board.read(), 20);
  const std::jthread drips([&](const std::stop_token& end) { drip(board.read(), end, sockets); });
  expect_met(hub, start_worker(board, 1, 2, {}, 3));
}

TEST(Meet, DrippingStrangersDoNotOutlastTheDeadline) {
  Board board;
  const Stopwatch watch;
  auto hub = start_hub(board, 2, {}, 2);
  auto sockets = strangers(board.read(), 60);
  const std::jthread drips([&](const std::stop_token& end) { drip(board.read(), end, sockets); });
  expect_unmet(std::move(hub), {});
  EXPECT_LT(watch.seconds(), 8);
}

TEST(Meet, SilentStrangersHoldUpNobody) {
  Board board;
  auto hub = start_hub(board, 2);
  const auto silent = strangers(board.read(), 200);
  const Stopwatch watch;
  expect_met(hub, start_worker(board, 1, 2));
  EXPECT_LT(watch.seconds(), kAtOnce);
}

TEST(Meet, ASecondProcessOfOneRankIsRefused) {
  for (const Secret& secret : {Secret(), kSecret}) {
    Board board;
    auto hub = start_hub(board, 3, secret);
    const Connections first = start_worker(board, 1, 3, secret).get();
    expect_unmet(
        start_worker(board, 1, 3, secret),
        {formatted(
            "worker 1 on {} was refused: a process on {} has rank 1 already", host_name(),
            host_name())},
        ErrorKind::Config);
    const Connections last = start_worker(board, 2, 3, secret).get();
    const Connections all = hub.get();
    expect_carries(first.sockets[0], all.sockets[1]);
    expect_carries(last.sockets[0], all.sockets[2]);
  }
}

TEST(Meet, TheSameProcessMayComeAgain) {
  Board board;
  auto hub = start_hub(board, 3);
  const Meeting meeting = board.read();
  Socket mine;
  for (int n = 0; n < 2; ++n) {
    mine = connect_to(meeting);
    answer_to(mine, hello_of(meeting, 1, 3, false, 'x'), Type::Welcome);
  }
  const Connections last = start_worker(board, 2, 3).get();
  const Connections all = hub.get();
  expect_carries(mine, all.sockets[1]);
}

TEST(Meet, ARankThatIsNone) {
  Board board;
  auto hub = start_hub(board, 2);
  const Meeting meeting = board.read();
  for (const int rank : {0, 2, 1 << 30}) {
    const Socket socket = connect_to(meeting);
    expect_has(
        answer_to(socket, hello_of(meeting, rank, 2, false, 'x'), Type::Refused),
        formatted("expected a rank from 1 to 1, got {}", rank));
  }
  expect_met(hub, start_worker(board, 1, 2));
}

TEST(Meet, OtherNumbersOfProcesses) {
  for (const int size : {2, 4}) {
    Board board;
    auto hub = start_hub(board, 3);
    expect_both_refuse(
        std::move(hub), start_worker(board, 1, size),
        formatted(
            "worker 1 on {} was started as one of {} processes, but worker 0 "
            "on {} as one of 3",
            host_name(), size, host_name()));
  }
}

}  // namespace
}  // namespace abtrain::comm::wire
