// TCP connections between the processes of a run. Move-only; failures throw
// Error(PeerLost).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain {

// One moment by which several waits must end.
class Deadline {
 public:
  explicit Deadline(double seconds);
  double seconds_left() const;  // 0 once it has passed
  bool has_passed() const {
    return seconds_left() == 0;
  }
  // For poll(): rounded up, so that it does not return just before.
  int milliseconds_left() const;

 private:
  std::chrono::steady_clock::time_point end_;
};

class Socket {
 public:
  Socket() = default;
  explicit Socket(int file) : file_(file) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  // On one IPv4 address of this host, or on all of its addresses where that is
  // empty. Port 0: one of the system's choice.
  static Socket listen(const std::string& address = {}, int port = 0);
  int port() const;
  // Does not wait: an unconnected socket where nobody has connected.
  Socket accept() const;
  // One try; an unconnected socket where nobody answers in time.
  static Socket connect(const std::string& address, int port, double seconds);

  bool is_open() const {
    return file_ >= 0;
  }
  int file() const {
    return file_;
  }
  // The caller closes the file.
  int release() noexcept;
  // False where the other end is gone or does not read within the time.
  bool send_all(std::string_view bytes, double seconds) const noexcept;
  // Does not wait: the number of bytes that had come, nothing where the other
  // end is gone.
  std::optional<std::size_t> receive_some(char* bytes, std::size_t count)
      const noexcept;
  // False where nothing has come when the time is over.
  bool wait_readable(const Deadline& deadline) const noexcept;

 private:
  void keep_alive() const;
  int file_ = -1;
};

// IPv4 addresses of this host, the loopback's last.
std::vector<std::string> own_addresses();
// The IPv4 address of this host that the name stands for on every host; empty
// where there is no such one: another host's name, one of several addresses or
// of IPv6, or this host's own name for its loopback.
std::string own_address_of(const std::string& host);
std::string host_name();

}  // namespace abtrain
