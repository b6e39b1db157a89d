// Connections over the loopback.
#include "base/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace abtrain {
namespace {

const std::string kLoopback = "127.0.0.1";
constexpr double kLong = 60;   // for what must come
constexpr double kSoon = 0.1;  // for what cannot

struct Pair {
  Socket one;
  Socket other;
};

Pair connected() {
  const Socket listener = Socket::listen();
  Pair pair;
  pair.one = Socket::connect(kLoopback, listener.port(), kLong);
  listener.wait_readable(Deadline(kLong));
  pair.other = listener.accept();
  return pair;
}

bool send_all(const Socket& socket, const std::string& bytes) {
  return socket.send_all(bytes, kLong);
}

// The next bytes; fewer than `count` where the other end closes.
std::string received(const Socket& socket, std::size_t count) {
  const Deadline deadline(kLong);
  std::string bytes(count, '\0');
  std::size_t size = 0;
  while (size < count) {
    const auto got = socket.receive_some(bytes.data() + size, count - size);
    if (!got || (*got == 0 && !socket.wait_readable(deadline))) {
      break;
    }
    size += *got;
  }
  bytes.resize(size);
  return bytes;
}

TEST(Socket, CarriesBytesBothWays) {
  const Pair pair = connected();
  ASSERT_TRUE(pair.one.is_open());
  ASSERT_TRUE(pair.other.is_open());
  EXPECT_TRUE(send_all(pair.one, std::string("a\0b\n", 4)));
  EXPECT_EQ(received(pair.other, 4), std::string("a\0b\n", 4));
  EXPECT_TRUE(send_all(pair.other, "back"));
  EXPECT_EQ(received(pair.one, 4), "back");
  EXPECT_TRUE(send_all(pair.one, ""));
}

TEST(Socket, CarriesMoreThanItsBuffersHold) {
  const Pair pair = connected();
  std::string sent(30'000'000, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>(i % 251);
  }
  std::string got;
  {
    const std::jthread reader([&] { got = received(pair.other, sent.size()); });
    EXPECT_TRUE(send_all(pair.one, sent));
  }
  EXPECT_TRUE(got == sent);
}

TEST(Socket, AClosedEndIsSeenAfterWhatItSent) {
  Pair pair = connected();
  EXPECT_TRUE(send_all(pair.one, "last"));
  pair.one = Socket();
  EXPECT_EQ(received(pair.other, 4), "last");
  EXPECT_EQ(received(pair.other, 1), "");
}

TEST(Socket, AMessageThatBreaksOffIsNone) {
  Pair pair = connected();
  EXPECT_TRUE(send_all(pair.one, "la"));
  pair.one = Socket();
  EXPECT_EQ(received(pair.other, 4), "la");
}

TEST(Socket, SendingToAClosedEndFailsWithoutASignal) {
  Pair pair = connected();
  pair.one = Socket();
  const std::string bytes(1 << 20, 'x');
  bool sent = true;
  for (int n = 0; n < 1000 && sent; ++n) {
    sent = send_all(pair.other, bytes);
  }
  EXPECT_FALSE(sent);
}

TEST(Socket, NobodyListening) {
  const int port = Socket::listen().port();  // and closed again
  EXPECT_GT(port, 0);
  EXPECT_FALSE(Socket::connect(kLoopback, port, kSoon).is_open());
  EXPECT_FALSE(Socket::connect("no address", port, kSoon).is_open());
}

TEST(Socket, ListensOnTheAddressThatItIsGiven) {
  const Socket listener = Socket::listen(kLoopback);
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &length), 0);
  EXPECT_EQ(own.sin_family, AF_INET);
  EXPECT_EQ(own.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(ntohs(own.sin_port), listener.port());
  EXPECT_TRUE(Socket::connect(kLoopback, listener.port(), kLong).is_open());
  EXPECT_THROW(Socket::listen(kLoopback, listener.port()), Error);
  EXPECT_THROW(Socket::listen("", listener.port()), Error);
}

TEST(Socket, AnEndThatDoesNotReadHoldsNobodyUpForEver) {
  const Pair pair = connected();
  EXPECT_FALSE(pair.one.send_all(std::string(64 << 20, 'x'), kSoon));
}

TEST(Socket, NothingThatHasComeIsNoEnd) {
  const Pair pair = connected();
  char byte = 0;
  EXPECT_FALSE(pair.one.wait_readable(Deadline(kSoon)));
  EXPECT_EQ(pair.one.receive_some(&byte, 1), 0u);
  EXPECT_FALSE(Socket::listen().accept().is_open());
}

TEST(Socket, MovesAndCloses) {
  Pair pair = connected();
  const int file = pair.one.get();
  Socket moved = std::move(pair.one);
  EXPECT_EQ(moved.get(), file);
  EXPECT_TRUE(send_all(moved, "x"));
  EXPECT_FALSE(Socket().is_open());
  EXPECT_FALSE(send_all(Socket(), "x"));
}

TEST(Socket, OwnAddressesEndWithTheLoopbacks) {
  const std::vector<std::string> addresses = own_addresses();
  ASSERT_FALSE(addresses.empty());
  EXPECT_NE(std::ranges::find(addresses, "127.0.0.1"), addresses.end());
  bool loopback = false;
  for (const std::string& address : addresses) {
    in6_addr parsed{};
    const int family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
    EXPECT_EQ(::inet_pton(family, address.c_str(), &parsed), 1) << address;
    const bool is_loopback = address.starts_with("127.") || address == "::1";
    EXPECT_FALSE(loopback && !is_loopback) << address;
    loopback = loopback || is_loopback;
  }
  EXPECT_FALSE(host_name().empty());
}

TEST(Socket, OnlyAnAddressThatAllHostsKnowIsOwn) {
  for (const char* own : {"127.0.0.1", "localhost"}) {
    EXPECT_EQ(own_address_of(own), "127.0.0.1") << own;
  }
  for (const char* other : {"192.0.2.1", "127.0.1.1", "", "2001:db8::1"}) {  // nobody's
    EXPECT_EQ(own_address_of(other), "") << other;
  }
  // Where this host calls its loopback by its own name, others do not.
  EXPECT_FALSE(own_address_of(host_name()).starts_with("127."));
}

TEST(Socket, ConnectsByIpv6) {
  const auto own = own_addresses();
  if (std::ranges::find(own, "::1") == own.end()) {
    GTEST_SKIP() << "no IPv6 here";
  }
  EXPECT_EQ(own_address_of("::1"), "::1");
  const Socket listener = Socket::listen("::1");
  EXPECT_GT(listener.port(), 0);
  EXPECT_TRUE(Socket::connect("::1", listener.port(), kLong).is_open());
  EXPECT_FALSE(Socket::connect(kLoopback, listener.port(), kSoon).is_open());
  const Socket on_all = Socket::listen();
  EXPECT_TRUE(Socket::connect("::1", on_all.port(), kLong).is_open());
}

TEST(Socket, NamesThatAreUnknownHaveAReason) {
  EXPECT_EQ(why_unknown("127.0.0.1"), "");
  EXPECT_EQ(why_unknown("localhost"), "");
  EXPECT_NE(why_unknown("no-such-host.invalid"), "");
}

TEST(Socket, HostAndPortPutsIpv6InBrackets) {
  EXPECT_EQ(host_and_port("node1", 29500), "node1:29500");
  EXPECT_EQ(host_and_port("2001:db8::1", 29500), "[2001:db8::1]:29500");
}

TEST(Deadline, Passes) {
  EXPECT_TRUE(Deadline(0).has_passed());
  EXPECT_EQ(Deadline(-1).milliseconds_left(), 0);
  const Deadline far(1e300);
  EXPECT_FALSE(far.has_passed());
  EXPECT_GT(far.milliseconds_left(), 0);
}

}  // namespace
}  // namespace abtrain
