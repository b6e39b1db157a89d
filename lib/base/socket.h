// TCP connections between the processes of a run. Move-only; failures throw
// Error(PeerLost).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // On all addresses of this host, a port of the system's choice.
  static Socket listen();
  int port() const;
  Socket accept() const;
  // Tries the addresses in turn, again and again; an unconnected socket where
  // none has answered in time.
  static Socket connect(
      const std::vector<std::string>& addresses, int port, double seconds);

  bool is_open() const {
    return file_ >= 0;
  }
  int file() const {
    return file_;
  }
  // Returns false where the other end is gone.
  bool send_all(std::string_view bytes) const noexcept;
  bool receive_all(char* bytes, std::size_t count) const noexcept;

 private:
  void keep_alive() const;
  int file_ = -1;
};

// IPv4 addresses of this host, the loopback's last.
std::vector<std::string> own_addresses();
std::string host_name();

}  // namespace abtrain
