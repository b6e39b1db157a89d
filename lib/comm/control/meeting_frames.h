// The contents of a meeting's messages, and the text that both sides authenticate.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/text.h"
#include "comm/control/meeting.h"
#include "comm/control/secret.h"
#include "comm/control/wire.h"

namespace abtrain::comm::wire {

using Nonce = std::array<unsigned char, 32>;

// The text of a Hello. The host's name follows it.
struct Greeting {
  std::int32_t size;        // number of processes, as this process knows it
  std::uint32_t is_sealed;  // nonzero: this process has a secret
  // Random; the same in all connections that one process attempts.
  std::array<unsigned char, 16> process;
  Nonce nonce;  // of this connection
};

// The text of a Challenge. The text of a Proof is the MAC alone.
struct Challenge {
  Nonce nonce;
  Mac mac;
};

// The bytes of these structs are sent and authenticated, so none of them may be padding.
static_assert(std::has_unique_object_representations_v<Meeting>);
static_assert(std::has_unique_object_representations_v<Greeting>);
static_assert(std::has_unique_object_representations_v<Challenge>);

constexpr double kAnswerSeconds = 1;  // time to send an answer, which fits any socket buffer

// The text that both sides authenticate. `role` (below) keeps either side from returning the other
// side's answer, the nonces prevent replaying an answer from another connection, and `meeting`
// keeps a worker from being sent to an address that worker 0 has not named.
inline std::string transcript(
    const char* role, const Meeting& meeting, const Message& hello, const Nonce& nonce) {
  return formatted(
      "abtrain meeting, version 1, {} {}\0{}{}{}", role, hello.rank, bytes_of(meeting),
      bytes_of(nonce), hello.text);
}
constexpr const char* kHub = "worker 0 to";
constexpr const char* kWorker = "worker";

// Worker 0's part of a meeting: returns when all others have connected.
Connections welcome(const MeetOptions& options, const Meeting& meeting, const Socket& listener);

}  // namespace abtrain::comm::wire
