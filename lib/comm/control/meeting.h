// How the processes of a run meet: each opens a TCP connection to worker 0.
//
// Worker 0 tells all other processes a token and its addresses. A process sends a Hello with its
// rank and this token, and worker 0 answers with Welcome or Refused. If there is a secret, both
// sides first prove that they have it: worker 0 with a Challenge, then the process with a Proof.
// Challenge and Proof each carry a MAC over the Meeting that worker 0 has announced, the Hello and
// a random number from each side.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/socket.h"
#include "comm/control/secret.h"
#include "comm/share.h"

namespace abtrain::comm::wire {

// Worker 0's announcement. The size is fixed, as ShareBytes requires.
struct Meeting {
  std::int64_t token = 0;  // random; identifies this run
  std::int32_t port = 0;
  std::array<char, 276> addresses{};  // as many as fit, separated by spaces
};

struct MeetOptions {
  int rank = 0;
  int size = 1;
  // Gives worker 0's bytes to all. Collective.
  ShareBytes share = {};
  double connect_timeout = 60;  // seconds, for everything but share()
  Secret secret = {};           // authenticates the connections
  std::string address = {};     // where worker 0 listens; empty: on all addresses
  // Called several times per second while a process waits for others. Throws to give up.
  std::function<void()> check = [] {};
};

struct Connections {
  // Worker 0 has one per worker (its own is unused); every other worker has one, to worker 0.
  std::vector<Socket> sockets;
  std::vector<std::string> hosts;  // by rank; "" if it is not known
};

// Collective. Throws Error(PeerLost) when a process does not connect in time. Throws Error(Config)
// when two claim one rank, or when processes differ in the secret or in the number of processes.
Connections meet(const MeetOptions& options);

}  // namespace abtrain::comm::wire
