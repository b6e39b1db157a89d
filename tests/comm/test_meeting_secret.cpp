// A meeting of processes that have a secret: who lacks it takes no place.
#include "meeting_workers.h"

namespace abtrain::comm::wire {
namespace {

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
  expect_both_refuse(
      std::move(hub), join_at(forged, kSecret, kTimeout),
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
    expect_unmet(
        join_at(meeting, kSecret), {}, challenges ? ErrorKind::Config : ErrorKind::PeerLost);
  }
}

// A hand-made worker that has said Hello and been challenged.
struct Challenged {
  Challenged(const Meeting& meeting, const Message& said)
      : hello(said), socket(connect_to(meeting)) {
    challenge = read_as<Challenge>(answer_to(socket, hello, Type::Challenge)).value();
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
  expect_closed_by(again.socket, good.proof);
  Message other = hello;
  other.rank = 2;
  const Challenged rank(meeting, other);
  expect_closed_by(rank.socket, good.proof);
  const Challenged mirror(meeting, hello);
  Message reflected = mirror.proof;
  reflected.text = bytes_of(mirror.challenge.mac);
  expect_closed_by(mirror.socket, reflected);
  const Challenged brief(meeting, hello);
  expect_closed_by(brief.socket, {Type::Proof, 1, meeting.token, "x"});
  // The one place that it was made for takes it.
  answer_to(good.socket, good.proof, Type::Welcome);
  EXPECT_NO_THROW(start_worker(board, 2, 3, kSecret).get());
  EXPECT_NO_THROW(hub.get());
}

TEST(MeetWithASecret, TheTokenAloneTakesNoPlace) {
  Board board;
  auto hub = start_hub(board, 2, kSecret);
  const Meeting meeting = board.read();
  std::vector<Challenged> strangers;
  for (int n = 0; n < 100; ++n) {
    strangers.emplace_back(meeting, hello_of(meeting, 1, 2, true, 'x'));
  }
  expect_met(hub, start_worker(board, 1, 2, kSecret));
}

}  // namespace
}  // namespace abtrain::comm::wire
