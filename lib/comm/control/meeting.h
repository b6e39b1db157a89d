// How the processes of a run meet: each one by a TCP connection to worker 0.
//
// Worker 0 tells all others where it listens, and a token. A process sends a
// Hello with its rank and this token, and worker 0 answers with Welcome or
// Refused. If there is a secret, both first prove that they have it, by a MAC
// over what they were told, the Hello and a random number from each side: a
// Challenge by worker 0, then a Proof by the process.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket.h"
#include "comm/control/secret.h"
#include "comm/share.h"

namespace abtrain::comm::wire {

// Where worker 0 listens. Of a fixed size, for the exchange.
struct Meeting {
  std::int64_t token = 0;  // of this run
  std::int32_t port = 0;
  std::array<char, 276> addresses{};  // as many as fit, with spaces between them
};

struct MeetOptions {
  int rank = 0;
  int size = 1;
  // Gives worker 0's bytes to all. Collective.
  ShareBytes share = {};
  double connect_timeout = 60;  // seconds, for everything but share()
  Secret secret = {};           // authenticates the connections
  std::string address = {};     // where worker 0 listens; empty: on all addresses
};

struct Connections {
  // At worker 0: one per worker, its own unused. Elsewhere: one, to worker 0.
  std::vector<Socket> sockets;
  std::vector<std::string> hosts;  // by rank; "" if it is not known
};

// Collective. Throws Error(PeerLost) when a process does not come in time, and
// Error(Config) when a rank comes twice or when secrets or numbers of processes
// differ.
Connections meet(const MeetOptions& options);

}  // namespace abtrain::comm::wire
