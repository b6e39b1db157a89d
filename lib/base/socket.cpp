#include "base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace abtrain {

namespace {

// Waits for an event of poll(); false if none has come by the deadline.
bool wait_for(int file, short events, const Deadline& deadline) {
  for (;;) {
    pollfd wait{file, events, 0};
    const int ready = ::poll(&wait, 1, deadline.milliseconds_left());
    if (ready >= 0 || errno != EINTR) {
      return ready == 1;
    }
  }
}

std::optional<in_addr> address_of(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) {
    return std::nullopt;
  }
  return address;
}

std::string text_of(const in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return text.data();
}

void set_option(int file, int level, int name, int value) {
  ::setsockopt(file, level, name, &value, sizeof(value));
}

Socket tcp_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

template <class Address>
bool bind_to(Socket& socket, const Address& own) {
  // Lets a run that is restarted use its port again at once.
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0;
}

sockaddr_in endpoint(const in_addr& address, int port) {
  return {
      .sin_family = AF_INET,
      .sin_port = htons(static_cast<std::uint16_t>(port)),
      .sin_addr = address,
      .sin_zero = {}};
}

bool bind_to_address(Socket& socket, const in_addr& address, int port) {
  socket = tcp_socket(AF_INET);
  return bind_to(socket, endpoint(address, port));
}

// Binds to all addresses, IPv4 and IPv6. Fails on a system without IPv6.
bool bind_to_all(Socket& socket, int port) {
  socket = tcp_socket(AF_INET6);
  set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  const sockaddr_in6 any{
      .sin6_family = AF_INET6,
      .sin6_port = htons(static_cast<std::uint16_t>(port)),
      .sin6_flowinfo = 0,
      .sin6_addr = in6addr_any,
      .sin6_scope_id = 0};
  return bind_to(socket, any);
}

}  // namespace

int Deadline::milliseconds_left() const {
  return static_cast<int>(std::ceil(1e3 * std::min(seconds_left(), 1e6)));
}

Socket Socket::listen(const std::string& address, int port) {
  Socket socket;
  bool bound = false;
  if (address.empty()) {
    bound = bind_to_all(socket, port) ||
            (errno != EADDRINUSE && bind_to_address(socket, in_addr{}, port));
  } else {
    const auto own = address_of(address);
    ABT_ASSERT(own, "'{}' is not an IPv4 address", address);
    bound = bind_to_address(socket, *own, port);
  }
  ABT_CHECK(
      bound && ::listen(socket.get(), SOMAXCONN) == 0, PeerLost, "cannot listen on {}, port {}: {}",
      address.empty() ? "all addresses" : address, port, std::strerror(errno));
  return socket;
}

int Socket::port() const {
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  ::getsockname(get(), reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(
      own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&own)->sin6_port
                                : reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

Socket Socket::accept() const {
  Socket socket(::accept4(get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.is_open()) {
    socket.keep_alive();
  }
  return socket;
}

Socket Socket::connect(const std::string& address, int port, double seconds) {
  const auto host = address_of(address);
  if (!host) {
    return {};
  }
  const sockaddr_in to = endpoint(*host, port);
  const Deadline deadline(seconds);
  Socket socket = tcp_socket(AF_INET);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    int error = 0;
    socklen_t length = sizeof(error);
    if (errno != EINPROGRESS || !wait_for(socket.get(), POLLOUT, deadline) ||
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
      return {};
    }
  }
  socket.keep_alive();
  return socket;
}

// A host that is switched off does not close its connections: after about a
// minute without an answer a connection counts as lost.
void Socket::keep_alive() const {
  set_option(get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(get(), IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(get(), IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(get(), IPPROTO_TCP, TCP_KEEPCNT, 3);
  // In ms, while data is in flight.
  set_option(get(), IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
  set_option(get(), IPPROTO_TCP, TCP_NODELAY, 1);
}

bool Socket::send_all(std::string_view bytes, double seconds) const noexcept {
  const Deadline deadline(seconds);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(get(), POLLOUT, deadline)) {
        return false;
      }
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::optional<std::size_t> Socket::receive_some(char* bytes, std::size_t count) const noexcept {
  for (;;) {
    const ssize_t got = ::recv(get(), bytes, count, MSG_DONTWAIT);
    if (got > 0) {
      return static_cast<std::size_t>(got);
    }
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return 0;
    }
    return std::nullopt;
  }
}

bool Socket::wait_readable(const Deadline& deadline) const noexcept {
  return wait_for(get(), POLLIN, deadline);
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  std::vector<std::string> loopback;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return {"127.0.0.1"};
  }
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    (i->ifa_flags & IFF_LOOPBACK ? loopback : addresses).push_back(text_of(address->sin_addr));
  }
  ::freeifaddrs(first);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

std::string own_address_of(const std::string& host) {
  if (host == "localhost") {
    return "127.0.0.1";
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (host.empty() || ::getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) {
    return {};
  }
  std::vector<std::string> found;
  for (const addrinfo* i = first; i != nullptr; i = i->ai_next) {
    found.push_back(
        i->ai_family == AF_INET
            ? text_of(reinterpret_cast<const sockaddr_in*>(i->ai_addr)->sin_addr)
            : "");
  }
  ::freeaddrinfo(first);
  const auto own = own_addresses();
  if (found.size() != 1 || std::ranges::find(own, found[0]) == own.end() ||
      (found[0].starts_with("127.") && found[0] != host)) {
    return {};
  }
  return found[0];
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace abtrain
