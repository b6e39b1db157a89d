// TCP connections between the processes of a run. A Socket is move-only and
// owns its file descriptor; failures throw Error(PeerLost).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"

namespace abtrain {

// A point in time by which one or several waits must end.
class Deadline {
 public:
  explicit Deadline(double seconds) : seconds_(seconds) {}
  // 0 once the deadline has passed.
  double seconds_left() const {
    return std::max(0.0, seconds_ - watch_.seconds());
  }
  bool has_passed() const {
    return seconds_left() == 0;
  }
  // For poll(): rounded up, so that poll() does not return just before the
  // deadline.
  int milliseconds_left() const;

 private:
  double seconds_;
  Stopwatch watch_;
};

class Socket : public Descriptor {
 public:
  using Descriptor::Descriptor;

  // Listens on one address of this host (IPv4 or IPv6), or on all of its addresses if
  // `address` is empty. Port 0: the system chooses one.
  static Socket listen(const std::string& address = {}, int port = 0);
  int port() const;
  // Does not wait: returns a closed socket if nobody has connected.
  Socket accept() const;
  // Tries once; returns a closed socket if nobody answers in time.
  static Socket connect(const std::string& address, int port, double seconds);

  // False if the other end is gone or does not read everything in time.
  bool send_all(std::string_view bytes, double seconds) const noexcept;
  // Does not wait: returns the number of bytes that had arrived, possibly 0, or
  // nothing if the other end is gone.
  std::optional<std::size_t> receive_some(char* bytes, std::size_t count) const noexcept;
  // False if nothing has arrived by the deadline.
  bool wait_readable(const Deadline& deadline) const noexcept;

 private:
  void keep_alive() const;
};

// The addresses of this host, except link-local IPv6 ones: first IPv4, then IPv6, then loopback.
std::vector<std::string> own_addresses();
// The address of this host for the name `host`, if other hosts resolve it to the same. Empty if
// `host` names another host, has several addresses, or is this host's own name for its loopback (as
// in Debian's /etc/hosts). "localhost" gives 127.0.0.1.
std::string own_address_of(const std::string& host);
// Why the system knows no address of this name; "" if it knows one.
std::string why_unknown(const std::string& host);
// "node1:29500", "[2001:db8::1]:29500"
std::string host_and_port(const std::string& host, int port);
std::string host_name();

}  // namespace abtrain
