// What the processes of a control channel send each other, and how they meet:
// each by one TCP connection to worker 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/socket.h"
#include "comm/share.h"

namespace abtrain::comm::wire {

enum class Type : std::uint32_t {
  Hello,    // value: token; text: host
  Stop,     // to worker 0: somebody wants to
  Ask,      // from worker 0: how many steps have you begun?
  Begun,    // value: steps
  StopAt,   // value: steps
  Vote,     // value: exit code or 0; text: message
  Verdict,  // rank: whose; value and text as above
  Failed,   // rank: whose; value: exit code; text: message
  Bye       // value: steps, as Begun
};

struct Message {
  Type type;
  int rank;
  std::int64_t value = 0;
  std::string text = {};
};

// False, or nothing, where the other end is gone.
bool send(const Socket& socket, const Message& message);
std::optional<Message> receive(const Socket& socket);

// Where worker 0 listens; of one size, for the exchange.
struct Meeting {
  std::int64_t token = 0;  // of this run
  std::int32_t port = 0;
  std::array<std::array<char, 16>, 16> addresses{};
};

struct Connections {
  // At worker 0: one a worker, its own unused. Elsewhere one, to worker 0.
  std::vector<Socket> sockets;
  std::vector<std::string> hosts;  // by rank; "" where it is not known
};

// Collective. Throws Error(PeerLost) where somebody cannot be reached within
// `timeout` seconds.
Connections meet(int rank, int size, const Share& share, double timeout);

}  // namespace abtrain::comm::wire
