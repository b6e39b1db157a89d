// Processes that meet over the loopback, each a thread of the test.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "base/clock.h"
#include "comm/control/meeting.h"
#include "comm/control/meeting_frames.h"
#include "control_workers.h"

namespace abtrain::comm::wire {

constexpr double kSoon = 0.3;   // for what nobody answers
constexpr double kAtOnce = 20;  // far less than kTimeout
const std::string kHost = "127.0.0.1";
const Secret kSecret("a secret of some length");

// Worker 0's meeting, for the others.
class Board {
 public:
  ShareBytes writer() {
    return [this](void* data, std::size_t bytes) {
      ASSERT_EQ(bytes, sizeof(Meeting));
      promise_.set_value(*static_cast<Meeting*>(data));
    };
  }
  ShareBytes reader() const {
    return [this](void* data, std::size_t) { *static_cast<Meeting*>(data) = read(); };
  }
  Meeting read() const {
    return future_.get();
  }

 private:
  std::promise<Meeting> promise_;
  std::shared_future<Meeting> future_ = promise_.get_future().share();
};

// What a process meets; get() throws why it does not.
using Met = std::future<Connections>;

inline Met start(MeetOptions options) {
  return std::async(std::launch::async, [options] { return meet(options); });
}

inline Met start_hub(Board& board, int size, const Secret& secret = {}, double timeout = kTimeout) {
  return start({0, size, board.writer(), timeout, secret, kHost});
}

inline Met start_worker(
    const Board& board, int rank, int size, const Secret& secret = {}, double timeout = kTimeout) {
  return start({rank, size, board.reader(), timeout, secret});
}

inline Socket connect_to(const Meeting& meeting) {
  Socket socket = Socket::connect(kHost, meeting.port, kTimeout);
  EXPECT_TRUE(socket.is_open());
  return socket;
}

// A Hello as a process of the run sends it.
inline Message hello_of(const Meeting& meeting, int rank, int size, bool is_sealed, char process) {
  Greeting greeting{};
  greeting.size = size;
  greeting.is_sealed = is_sealed;
  greeting.process.fill(static_cast<unsigned char>(process));
  fill_random(greeting.nonce.data(), greeting.nonce.size());
  return {Type::Hello, rank, meeting.token, formatted("{}by hand", bytes_of(greeting))};
}

// The other end closes it without another message.
inline void expect_closed(const Socket& socket) {
  const Stopwatch watch;
  EXPECT_FALSE(receive(socket, kTimeout));
  EXPECT_LT(watch.seconds(), kAtOnce);
}

inline void expect_closed_by(const Socket& socket, const Message& message) {
  EXPECT_TRUE(send(socket, message));
  expect_closed(socket);
}

// The text of the answer to a message.
inline std::string answer_to(const Socket& socket, const Message& message, Type type) {
  EXPECT_TRUE(send(socket, message));
  const auto answer = receive(socket, kTimeout);
  EXPECT_TRUE(answer && answer->type == type);
  return answer ? answer->text : "";
}

inline void expect_carries(const Socket& from, const Socket& to) {
  EXPECT_TRUE(send(from, {Type::Vote, 1, 0, "it is me"}));
  const auto message = receive(to, kTimeout);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, "it is me");
}

inline void expect_met(Met& hub, Met worker) {
  const Connections one = hub.get();
  const Connections other = worker.get();
  expect_carries(other.sockets[0], one.sockets[1]);
  expect_carries(one.sockets[1], other.sockets[0]);
  EXPECT_EQ(one.hosts[1], host_name());
  EXPECT_EQ(other.hosts[0], host_name());
}

inline void expect_unmet(
    Met process, const std::vector<std::string>& parts, ErrorKind kind = ErrorKind::PeerLost) {
  expect_error([&] { process.get(); }, kind, parts);
}

inline Meeting meeting_at(int port) {
  Meeting meeting;
  meeting.token = 42;
  meeting.port = port;
  kHost.copy(meeting.addresses.data(), kHost.size());
  return meeting;
}

inline Met join_at(const Meeting& meeting, const Secret& secret = {}, double timeout = kSoon) {
  const auto share = [meeting](void* data, std::size_t) { *static_cast<Meeting*>(data) = meeting; };
  return start({1, 2, share, timeout, secret});
}

inline void expect_both_refuse(Met hub, Met worker, const std::string& why) {
  const Stopwatch watch;
  expect_unmet(std::move(hub), {why}, ErrorKind::Config);
  expect_unmet(std::move(worker), {why}, ErrorKind::Config);
  EXPECT_LT(watch.seconds(), kAtOnce);
}

}  // namespace abtrain::comm::wire
