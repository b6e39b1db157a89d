// Connections over the loopback.
#include "base/socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace abtrain {
namespace {

const std::vector<std::string> kLoopback = {"127.0.0.1"};
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
  pair.other = listener.accept();
  return pair;
}

TEST(Socket, CarriesBytesBothWays) {
  const Pair pair = connected();
  ASSERT_TRUE(pair.one.is_open());
  ASSERT_TRUE(pair.other.is_open());
  std::string got(4, '\0');
  EXPECT_TRUE(pair.one.send_all(std::string("a\0b\n", 4)));
  EXPECT_TRUE(pair.other.receive_all(got.data(), 4));
  EXPECT_EQ(got, std::string("a\0b\n", 4));
  EXPECT_TRUE(pair.other.send_all("back"));
  EXPECT_TRUE(pair.one.receive_all(got.data(), 4));
  EXPECT_EQ(got, "back");
  EXPECT_TRUE(pair.one.send_all(""));
}

TEST(Socket, CarriesMoreThanItsBuffersHold) {
  const Pair pair = connected();
  std::string sent(30'000'000, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>(i % 251);
  }
  std::string got(sent.size(), '\0');
  bool complete = false;
  {
    const std::jthread reader(
        [&] { complete = pair.other.receive_all(got.data(), got.size()); });
    EXPECT_TRUE(pair.one.send_all(sent));
  }
  EXPECT_TRUE(complete);
  EXPECT_TRUE(got == sent);
}

TEST(Socket, AClosedEndIsSeenAfterWhatItSent) {
  Pair pair = connected();
  EXPECT_TRUE(pair.one.send_all("last"));
  pair.one = Socket();
  std::string got(4, '\0');
  EXPECT_TRUE(pair.other.receive_all(got.data(), 4));
  EXPECT_EQ(got, "last");
  EXPECT_FALSE(pair.other.receive_all(got.data(), 1));
}

TEST(Socket, AMessageThatBreaksOffIsNone) {
  Pair pair = connected();
  EXPECT_TRUE(pair.one.send_all("la"));
  pair.one = Socket();
  std::string got(4, '\0');
  EXPECT_FALSE(pair.other.receive_all(got.data(), 4));
}

TEST(Socket, SendingToAClosedEndFailsWithoutASignal) {
  Pair pair = connected();
  pair.one = Socket();
  const std::string bytes(1 << 20, 'x');
  bool sent = true;
  for (int n = 0; n < 1000 && sent; ++n) {
    sent = pair.other.send_all(bytes);
  }
  EXPECT_FALSE(sent);
}

TEST(Socket, NobodyListening) {
  const int port = Socket::listen().port();  // and closed again
  EXPECT_GT(port, 0);
  EXPECT_FALSE(Socket::connect(kLoopback, port, kSoon).is_open());
  EXPECT_FALSE(Socket::connect({}, port, kSoon).is_open());
}

TEST(Socket, TriesTheAddressesInTurn) {
  const Socket listener = Socket::listen();
  const int port = listener.port();
  EXPECT_FALSE(Socket::connect({"no address"}, port, kSoon).is_open());
  EXPECT_TRUE(
      Socket::connect({"no address", "127.0.0.1"}, port, kLong).is_open());
}

TEST(Socket, MovesAndCloses) {
  Pair pair = connected();
  const int file = pair.one.file();
  Socket moved = std::move(pair.one);
  EXPECT_EQ(moved.file(), file);
  EXPECT_TRUE(moved.send_all("x"));
  EXPECT_FALSE(Socket().is_open());
  EXPECT_FALSE(Socket().send_all("x"));
}

TEST(Socket, OwnAddressesEndWithTheLoopbacks) {
  const std::vector<std::string> addresses = own_addresses();
  ASSERT_FALSE(addresses.empty());
  EXPECT_NE(std::ranges::find(addresses, "127.0.0.1"), addresses.end());
  bool loopback = false;
  for (const std::string& address : addresses) {
    in_addr parsed{};
    EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &parsed), 1) << address;
    EXPECT_FALSE(loopback && !address.starts_with("127.")) << address;
    loopback = loopback || address.starts_with("127.");
  }
  EXPECT_FALSE(host_name().empty());
}

}  // namespace
}  // namespace abtrain
