// Where processes that have only an address in common meet: LibTorch's
// TCPStore, as torch.distributed's env:// uses it.
//
// Rank 0 serves on host:port and all are its clients. Under torchrun the agent
// serves there already and rank 0 is a client too. Errors: Error(PeerLost)
// names host:port and what was waited for, for how long; Error(Config) where
// rank 0 cannot serve on the port, or another process has this rank.
//
// Whoever reaches the port can read and write what lies there:
// comm/control/meeting.h authenticates it where there is a secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace abtrain::comm {

// What torchrun tells its workers.
struct Elastic {
  bool agent_serves = false;  // TORCHELASTIC_USE_AGENT_STORE=True
  std::int64_t attempt = 0;   // TORCHELASTIC_RESTART_COUNT
};
Elastic elastic_from_env();

class Store {
 public:
  // Port 0 on rank 0: the system chooses one, port() tells which. The time-out
  // holds for the connection and for each share().
  Store(
      const std::string& host,
      int port,
      int rank,
      int size,
      double timeout_seconds,
      const Elastic& elastic = elastic_from_env());
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  // Gives rank 0's bytes to all ranks; collective. Rank 0 does not wait for the
  // others, but must serve until they have them.
  void share(void* data, std::size_t bytes);
  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace abtrain::comm
