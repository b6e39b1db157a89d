#include "base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"

namespace abtrain {

namespace {

[[noreturn]] void fail(const char* what, int error) {
  throw Error(ErrorKind::PeerLost, str(what, ": ", std::strerror(error)));
}

// One try with a time-out of its own: an address of another network may
// swallow packets.
int try_connect(const std::string& address, int port, int milliseconds) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) {
    return -1;
  }
  const int file =
      ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) {
    return -1;
  }
  int status =
      ::connect(file, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  if (status != 0 && errno == EINPROGRESS) {
    pollfd wait{file, POLLOUT, 0};
    int error = 0;
    socklen_t length = sizeof(error);
    status = ::poll(&wait, 1, milliseconds) == 1 &&
                     ::getsockopt(
                         file, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
                     error == 0
                 ? 0
                 : -1;
  }
  if (status != 0) {
    ::close(file);
    return -1;
  }
  ::fcntl(file, F_SETFL, ::fcntl(file, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace

Socket::Socket(Socket&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

Socket::~Socket() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

Socket Socket::listen() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (!socket.is_open() ||
      ::bind(
          socket.file_, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) !=
          0 ||
      ::listen(socket.file_, SOMAXCONN) != 0) {
    fail("cannot listen for the other workers", errno);
  }
  return socket;
}

int Socket::port() const {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  ::getsockname(file_, reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(own.sin_port);
}

Socket Socket::accept() const {
  Socket socket(::accept4(file_, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.is_open()) {
    socket.keep_alive();
  }
  return socket;
}

Socket Socket::connect(
    const std::vector<std::string>& addresses,
    int port,
    double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    for (const std::string& address : addresses) {
      Socket socket(try_connect(address, port, 1000));
      if (socket.is_open()) {
        socket.keep_alive();
        return socket;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (Clock::now() < end);
  return {};
}

// A host that is switched off sends no end: after about a minute without an
// answer the connection counts as lost.
void Socket::keep_alive() const {
  const int on = 1;
  const int idle = 30;
  const int interval = 10;
  const int probes = 3;
  const unsigned unanswered = 60'000;  // ms, where data is under way
  ::setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(file_, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(file_, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  ::setsockopt(file_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
  ::setsockopt(
      file_, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof(unanswered));
  ::setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool Socket::send_all(std::string_view bytes) const noexcept {
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
  }
  return true;
}

bool Socket::receive_all(char* bytes, std::size_t count) const noexcept {
  while (count > 0) {
    const ssize_t got = ::recv(file_, bytes, count, 0);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return false;
    }
    if (got > 0) {
      bytes += got;
      count -= static_cast<std::size_t>(got);
    }
  }
  return true;
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
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    ::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size());
    (i->ifa_flags & IFF_LOOPBACK ? loopback : addresses)
        .emplace_back(text.data());
  }
  ::freeifaddrs(first);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace abtrain
