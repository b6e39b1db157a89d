// A meeting of processes that have a secret: who lacks it takes no place.
#include "meeting_workers.h"

namespace abtrain::comm::wire {
namespace {

TEST(MeetWithASecret, AllHaveIt) {
  Board board;
  auto hub = start_hub(board, 2, kSecret);
  auto worker = start_worker(board, 1, 2, kSecret);
  expect_met(hub, worker);
}

TEST(MeetWithASecret, OneOfTheTwoHasNone) {
  for (const bool hub_has : {false, true}) {
    Board board;
    auto hub = start_hub(board, 2, hub_has ? kSecret : Secret());
    expect_both_refuse(
        std::move(hub), start_worker(board, 1, 2, hub_has ? Secret() : kSecret),
        formatted("{} on {} has a secret", hub_has ? "worker 0" : "worker 1", host_name()));
  }
}

TEST(MeetWithASecret, TheyHaveDifferentOnes) {
  Board board;
  auto hub = start_hub(board, 2, kSecret);
  expect_both_refuse(
      std::move(hub), start_worker(board, 1, 2, Secret("another secret, of their own")),
      "do not have the same secret");
}

// Hands on what comes, both ways, until one end closes.
void relay(const Socket& one, const Socket& other) {
  char byte = 0;
  const Deadline deadline(kTimeout);
  for (;;) {
    bool moved = false;
    for (const auto& [from, to] : {std::pair(&one, &other), {&other, &one}}) {
      const auto got = from->receive_some(&byte, 1);
      if (!got || (*got == 1 && !to->send_all({&byte, 1}, 1)) || deadline.has_passed()) {
        return;
      }
      moved = moved || *got == 1;
    }
    if (!moved) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// Somebody who can write the record, but lacks the secret, leads a worker to a
// port of his own and hands all on to the real worker 0.
TEST(MeetWithASecret, AForgedRecordLeadsToNobodyElse) {
  Board board;
  auto hub = start_hub(board, 2, kSecret);
  Meeting forged = board.read();
  const Socket listener = Socket::listen(kHost);
  forged.port = listener.port();
  const std::jthread between([&] {
    listener.wait_readable(Deadline(kTimeout));
    const Socket from = listener.accept();
    const Socket to = connect_to(board.read());
    relay(from, to);
  });
  const auto share = [&](void* data, std::size_t) { *static_cast<Meeting*>(data) = forged; };
  expect_both_refuse(
      std::move(hub), start({1, 2, share, kTimeout, kSecret}),
      "do not have the same secret (ABTRAIN_SECRET, ABTRAIN_SECRET_FILE), or "
      "somebody else answered in its place");
}

TEST(MeetWithASecret, AnImpostorOfWorkerZeroIsNotBelieved) {
  for (const bool challenges : {false, true}) {
    const Socket listener = Socket::listen(kHost);
    const Meeting meeting = meeting_at(listener.port());
    const std::jthread impostor([&] {
      listener.wait_readable(Deadline(kTimeout));
      const Socket socket = listener.accept();
      EXPECT_TRUE(receive(socket, kTimeout));
      send(
          socket, {challenges ? Type::Challenge : Type::Welcome, 0, meeting.token,
                   std::string(sizeof(Challenge), 'x')});
      receive(socket, 2 * kSoon);
    });
    const Heard heard = join_at(meeting, kSecret);
    EXPECT_EQ(heard.code, challenges ? kConfig : kLost);
  }
}

// A hand-made worker that has said Hello and been challenged.
struct Challenged {
  Challenged(const Meeting& meeting, const Message& said)
      : hello(said), socket(connect_to(meeting)) {
    EXPECT_TRUE(send(socket, hello));
    const auto reply = receive(socket, kTimeout);
    EXPECT_TRUE(reply && reply->type == Type::Challenge);
    challenge = *read_as<Challenge>(reply->text);
    proof = {
        Type::Proof, hello.rank, meeting.token,
        bytes_of(kSecret.mac_of(transcript(kWorker, meeting, hello, challenge.nonce)))};
  }
  Message hello;
  Socket socket;
  Challenge challenge{};
  Message proof{Type::Proof, 0};
};

TEST(MeetWithASecret, AProofIsWorthNothingElsewhere) {
  Board board;
  auto hub = start_hub(board, 3, kSecret);
  const Meeting meeting = board.read();
  const Message hello = hello_of(meeting, 1, 3, true, 'x');
  const Challenged good(meeting, hello);
  // Replayed on another connection; of another rank; the challenge sent back.
  const Challenged again(meeting, hello);
  EXPECT_TRUE(send(again.socket, good.proof));
  expect_closed(again.socket);
  Message other = hello;
  other.rank = 2;
  const Challenged rank(meeting, other);
  EXPECT_TRUE(send(rank.socket, good.proof));
  expect_closed(rank.socket);
  const Challenged mirror(meeting, hello);
  Message reflected = mirror.proof;
  reflected.text = bytes_of(mirror.challenge.mac);
  EXPECT_TRUE(send(mirror.socket, reflected));
  expect_closed(mirror.socket);
  const Challenged brief(meeting, hello);
  EXPECT_TRUE(send(brief.socket, {Type::Proof, 1, meeting.token, "x"}));
  expect_closed(brief.socket);
  // The one place that it was made for takes it.
  EXPECT_TRUE(send(good.socket, good.proof));
  const auto reply = receive(good.socket, kTimeout);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->type, Type::Welcome);
  auto last = start_worker(board, 2, 3, kSecret);
  EXPECT_EQ(last.get().heard.message, "");
  EXPECT_EQ(hub.get().heard.message, "");
}

TEST(MeetWithASecret, TheTokenAloneTakesNoPlace) {
  Board board;
  auto hub = start_hub(board, 2, kSecret);
  const Meeting meeting = board.read();
  std::vector<Challenged> strangers;
  for (int n = 0; n < 100; ++n) {
    strangers.emplace_back(meeting, hello_of(meeting, 1, 2, true, 'x'));
  }
  auto worker = start_worker(board, 1, 2, kSecret);
  expect_met(hub, worker);
}

}  // namespace
}  // namespace abtrain::comm::wire
