#include "comm/control_wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "base/error.h"

namespace abtrain::comm::wire {

namespace {

struct Header {
  Type type;
  std::int32_t rank;
  std::int64_t value;
  std::uint64_t length;
};

constexpr std::uint64_t kLongestText = 1 << 20;

// A stranger that connects, or is connected to, may say nothing.
void limit_wait(const Socket& socket, double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const timeval limit{
      whole,
      static_cast<suseconds_t>((seconds - static_cast<double>(whole)) * 1e6)};
  ::setsockopt(socket.file(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

Connections join(const Meeting& meeting, int rank, int size, double timeout) {
  std::vector<std::string> addresses;
  for (const auto& address : meeting.addresses) {
    if (address[0] != '\0') {
      addresses.emplace_back(address.data());
    }
  }
  // Another host may have one of these addresses too (of its own bridges): only
  // worker 0 answers with the token.
  while (!addresses.empty()) {
    Socket socket = Socket::connect(addresses, meeting.port, timeout);
    if (!socket.is_open()) {
      break;
    }
    limit_wait(socket, timeout);
    const bool sent =
        send(socket, {Type::Hello, rank, meeting.token, host_name()});
    const auto reply = sent ? receive(socket) : std::nullopt;
    // A connection to a port of this host where nobody listens can meet itself.
    if (reply && reply->type == Type::Hello && reply->rank == 0 &&
        reply->value == meeting.token) {
      limit_wait(socket, 0);
      Connections one;
      one.hosts.resize(static_cast<std::size_t>(size));
      one.hosts[0] = reply->text;
      one.sockets.push_back(std::move(socket));
      return one;
    }
    addresses.erase(addresses.begin());
  }
  throw Error(
      ErrorKind::PeerLost,
      str("worker ",
          rank,
          " on ",
          host_name(),
          " could not reach worker 0 at port ",
          meeting.port,
          " of any of its addresses within ",
          timeout,
          " s: is there a firewall between the hosts?"));
}

Connections
welcome(const Socket& listener, std::int64_t token, int size, double timeout) {
  Connections all;
  auto& [connections, hosts] = all;
  connections.resize(static_cast<std::size_t>(size));
  hosts.resize(static_cast<std::size_t>(size));
  hosts[0] = host_name();
  int missing = size - 1;
  while (missing > 0) {
    pollfd wait{listener.file(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(1000 * timeout));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    ABT_CHECK(
        ready > 0,
        PeerLost,
        missing,
        " of ",
        size,
        " workers did not connect to worker 0 on ",
        hosts[0],
        " within ",
        timeout,
        " s");
    Socket socket = listener.accept();
    limit_wait(socket, timeout / 4);  // workers wait longer for their answer
    const auto hello = socket.is_open() ? receive(socket) : std::nullopt;
    if (!hello || hello->type != Type::Hello || hello->value != token ||
        hello->rank <= 0 || hello->rank >= size) {
      continue;  // not one of ours
    }
    if (send(socket, {Type::Hello, 0, token, hosts[0]})) {
      limit_wait(socket, 0);
      const auto rank = static_cast<std::size_t>(hello->rank);
      missing -= connections[rank].is_open() ? 0 : 1;
      hosts[rank] = hello->text;
      connections[rank] = std::move(socket);
    }
  }
  return all;
}

}  // namespace

bool send(const Socket& socket, const Message& message) {
  const std::string text = message.text.substr(0, kLongestText);
  const Header header{message.type, message.rank, message.value, text.size()};
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return socket.send_all(bytes + text);
}

std::optional<Message> receive(const Socket& socket) {
  Header header;
  if (!socket.receive_all(reinterpret_cast<char*>(&header), sizeof(header)) ||
      header.length > kLongestText) {
    return std::nullopt;
  }
  Message message{header.type, header.rank, header.value};
  message.text.resize(header.length);
  if (!socket.receive_all(message.text.data(), header.length)) {
    return std::nullopt;
  }
  return message;
}

Connections meet(int rank, int size, const Share& share, double timeout) {
  Meeting meeting;
  Socket listener;
  if (rank == 0) {
    listener = Socket::listen();
    std::random_device random;  // tells runs apart, decides nothing
    meeting.token = static_cast<std::int64_t>(random()) << 31 ^ random();
    meeting.port = listener.port();
    std::size_t next = 0;
    for (const std::string& address : own_addresses()) {
      if (next < meeting.addresses.size()) {
        std::copy(
            address.begin(), address.end(), meeting.addresses[next++].begin());
      }
    }
  }
  share(&meeting, sizeof(meeting));
  return rank == 0 ? welcome(listener, meeting.token, size, timeout)
                   : join(meeting, rank, size, timeout);
}

}  // namespace abtrain::comm::wire
