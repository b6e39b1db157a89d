// How the processes of a run meet: each by one TCP connection to worker 0.
//
// Worker 0 tells all where it listens, and a token. A process comes with a
// Hello of its rank and this token, and worker 0 answers with Welcome or
// Refused. With a secret both prove first that they have it, by a MAC of what
// they were told, the Hello and a random number of each side: Challenge by
// worker 0, then Proof.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket.h"
#include "comm/control/secret.h"
#include "comm/share.h"

namespace abtrain::comm::wire {

// Where worker 0 listens; of one size, for the exchange. Any bytes are one.
struct Meeting {
  std::int64_t token = 0;  // of this run
  std::int32_t port = 0;
  std::array<std::uint32_t, 17> addresses{};  // as in_addr; 0: none
};

struct MeetOptions {
  int rank = 0;
  int size = 1;
  // Gives worker 0's bytes to all; collective.
  Share share = {};
  double timeout = 60;  // seconds, for all of it but share()
  Secret secret = {};
  std::string address = {};  // where worker 0 listens; empty: everywhere
};

struct Connections {
  // At worker 0: one a worker, its own unused. Elsewhere one, to worker 0.
  std::vector<Socket> sockets;
  std::vector<std::string> hosts;  // by rank; "" where it is not known
};

// Collective. Throws Error(PeerLost) where somebody does not come in time, and
// Error(Config) where a rank comes twice or secrets or sizes differ.
Connections meet(const MeetOptions& options);

}  // namespace abtrain::comm::wire
