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
#include <memory>
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

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The result of getaddrinfo(); if it fails, null, with its error code in `why`.
Addresses look_up(const std::string& host, const std::string& port, int flags, int& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* first = nullptr;
  why = ::getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &first);
  return {why == 0 ? first : nullptr, &::freeaddrinfo};
}

// The endpoint for a numeric address such as "10.0.0.1" or "2001:db8::1" and a port; null if the
// text is not such an address.
Addresses endpoint_of(const std::string& address, int port) {
  int why = 0;
  return look_up(address, formatted("{}", port), AI_NUMERICHOST | AI_NUMERICSERV, why);
}

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

void set_option(int file, int level, int name, int value) {
  ::setsockopt(file, level, name, &value, sizeof(value));
}

Socket tcp_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool bind_to(Socket& socket, const addrinfo& own) {
  socket = tcp_socket(own.ai_family);
  // Lets a restarted run use its previous port again at once.
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);  // "::" also accepts IPv4
  return ::bind(socket.get(), own.ai_addr, own.ai_addrlen) == 0;
}

}  // namespace

int Deadline::milliseconds_left() const {
  return static_cast<int>(std::ceil(1e3 * std::min(seconds_left(), 1e6)));
}

Socket Socket::listen(const std::string& address, int port) {
  Socket socket;
  bool bound = false;
  if (address.empty()) {
    bound = bind_to(socket, *endpoint_of("::", port)) ||
            (errno != EADDRINUSE && bind_to(socket, *endpoint_of("0.0.0.0", port)));
  } else {
    const Addresses own = endpoint_of(address, port);
    ABT_ASSERT(own, "'{}' is not an address", address);
    bound = bind_to(socket, *own);
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
  const Addresses to = endpoint_of(address, port);
  if (!to) {
    return {};
  }
  const Deadline deadline(seconds);
  Socket socket = tcp_socket(to->ai_family);
  if (::connect(socket.get(), to->ai_addr, to->ai_addrlen) != 0) {
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

// A host that is switched off does not close its connections, so a connection counts as lost after
// about a minute without an answer.
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
  std::array<std::vector<std::string>, 3> addresses;  // IPv4, IPv6, loopback
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return {"127.0.0.1"};
  }
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    const bool is_v6 = i->ifa_addr->sa_family == AF_INET6;
    if (!is_v6 && i->ifa_addr->sa_family != AF_INET) {
      continue;
    }
    const std::string text =
        text_of(i->ifa_addr, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    const bool is_of_one_link = text.find('%') != std::string::npos;  // "fe80::1%eth0"
    if (!is_of_one_link) {
      addresses[i->ifa_flags & IFF_LOOPBACK ? 2 : is_v6 ? 1 : 0].push_back(text);
    }
  }
  ::freeifaddrs(first);
  std::vector<std::string> all;
  for (const auto& some : addresses) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string own_address_of(const std::string& host) {
  if (host == "localhost") {
    return "127.0.0.1";
  }
  int why = 0;
  const Addresses found = look_up(host, "", 0, why);
  if (host.empty() || !found || found->ai_next != nullptr) {
    return {};
  }
  const std::string address = text_of(found->ai_addr, found->ai_addrlen);
  const auto own = own_addresses();
  const bool is_own = std::ranges::find(own, address) != own.end();
  return is_own && (!is_loopback(address) || address == host) ? address : "";
}

std::string why_unknown(const std::string& host) {
  int why = 0;
  look_up(host, "", 0, why);
  return why == 0 ? "" : why == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(why);
}

std::string host_and_port(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? formatted("[{}]:{}", host, port) : formatted("{}:{}", host, port);
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace abtrain
