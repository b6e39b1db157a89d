// A key-value store through which processes that share only an address find each other: LibTorch's
// TCPStore, used the way torch.distributed's env:// uses it.
//
// Rank 0 serves on host:port, and all ranks are its clients. Under torchrun the agent already
// serves there, and rank 0 is only a client. If a rank waits in vain, Error(PeerLost) names
// host:port, the awaited answer and the time; it is thrown at once for a name that this host does
// not know. Error(Config) says that rank 0 cannot serve on the port, or that another process has
// this rank.
//
// Anyone who reaches the port can read and write the store. If a secret is set,
// comm/control/meeting.h authenticates the address that rank 0 stores there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace abtrain::comm {

// What torchrun tells its workers by environment variables.
struct Elastic {
  bool agent_serves = false;  // TORCHELASTIC_USE_AGENT_STORE=True
  std::int64_t attempt = 0;   // TORCHELASTIC_RESTART_COUNT
};
Elastic elastic_from_env();

class Store {
 public:
  // If `port` is 0 on rank 0, the system chooses a port, which port() returns. The time-out applies
  // to the connection and to each share().
  Store(
      const std::string& host, int port, int rank, int size, double timeout_seconds,
      const Elastic& elastic = elastic_from_env());
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Gives rank 0's bytes to all ranks. Collective. Rank 0 does not wait for the others, but must
  // keep serving until they have the bytes.
  void share(void* data, std::size_t bytes);
  int port() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace abtrain::comm
