// Ranks that meet at a store on the loopback: threads here, each with a
// connection of its own.
#include "comm/store.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdlib>
#include <fstream>
#include <future>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/socket.h"
#include "comm/run_workers.h"
#include "comm/share.h"
#include "error_of.h"
#include "process_end.h"
#include "with_variables.h"

namespace abtrain::comm {
namespace {

constexpr double kStoreTimeout = 60;
constexpr double kUnanswered = 0.2;  // for what nobody answers
const std::string kLoopback = "127.0.0.1";
const Elastic kNoAgent;

using Values = std::vector<std::uint8_t>;

// Rank 0's values, all others' are overwritten.
Values values_of(int rank, std::size_t bytes) {
  Values values(bytes);
  std::iota(values.begin(), values.end(), static_cast<std::uint8_t>(rank * 7));
  return values;
}

void share_and_check(Store& store, int rank, std::size_t bytes) {
  Values values = values_of(rank, bytes);
  store.share(values.data(), values.size());
  EXPECT_EQ(values, values_of(0, bytes));
}

std::string address_of(int port) {
  return formatted("{}:{}", kLoopback, port);
}

// Runs ranks 1 to size-1 beside rank 0, each with a store of its own.
void run_ranks(int size, const std::function<void(Store&, int rank)>& body) {
  Store first(kLoopback, 0, 0, size, kStoreTimeout, kNoAgent);
  std::vector<std::future<void>> others;
  for (int rank = 1; rank < size; ++rank) {
    others.push_back(std::async(std::launch::async, [&, rank] {
      Store store(kLoopback, first.port(), rank, size, kStoreTimeout, kNoAgent);
      body(store, rank);
    }));
  }
  body(first, 0);
  for (auto& other : others) {
    other.get();
  }
}

class StoreRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, StoreRanks, ::testing::Values(1, 2, 3, 8));

TEST_P(StoreRanks, EachShareGivesRankZerosBytes) {
  run_ranks(GetParam(), [](Store& store, int rank) {
    for (const std::size_t bytes : {128, 0, 1, 100001, 128}) {
      share_and_check(store, rank, bytes);
    }
  });
}

c10d::TCPStoreOptions served() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return options;
}

TEST(StoreKeys, ASecondRunOnTheSameServerStartsAfresh) {
  c10d::TCPStore agent(kLoopback, served());
  const Elastic elastic{.agent_serves = true};
  auto other = std::async(std::launch::async, [&] {
    for (std::size_t bytes = 1; bytes <= 3; ++bytes) {
      Store store(kLoopback, agent.getPort(), 1, 2, kStoreTimeout, elastic);
      share_and_check(store, 1, bytes);
    }
  });
  for (std::size_t bytes = 1; bytes <= 3; ++bytes) {
    Store store(kLoopback, agent.getPort(), 0, 2, kStoreTimeout, elastic);
    share_and_check(store, 0, bytes);
  }
  other.get();
}

// Rank 1 comes where this is written in its place.
void come_after(const std::string& holder) {
  c10d::TCPStore agent(kLoopback, served());
  agent.set("abtrain/0/rank_1/1", Values(holder.begin(), holder.end()));
  Store(kLoopback, agent.getPort(), 1, 2, kStoreTimeout, {.agent_serves = true});
}

TEST(StoreKeys, ARankBelongsToOneProcessUntilThatHasEnded) {
  const std::string here = host_name();
  for (const std::string& holder : {std::string("else\x1b_where 77 x"), here + " 1 x"}) {
    expect_error(
        [&] { come_after(holder); }, ErrorKind::Config,
        {"has rank 1 already",
         holder[0] == 'e' ? "process 77 on else\\x1b_where" : "process 1 on " + here});
  }
  EXPECT_NO_THROW(come_after(formatted("{} {} x", here, pid_of_the_dead())));
}

// Addresses, in hexadecimals as the kernel writes them, at which a port is
// listened to.
std::vector<std::string> listening_at(int port) {
  std::vector<std::string> addresses;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(path);
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      std::string number, own, other, state;
      words >> number >> own >> other >> state;
      const std::size_t colon = own.find(':');
      if (state == "0A" && colon != std::string::npos &&
          std::stoi(own.substr(colon + 1), nullptr, 16) == port) {
        addresses.push_back(own.substr(0, colon));
      }
    }
  }
  return addresses;
}

TEST(StoreAddress, IsOnlyTheOneByWhichItIsReached) {
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const Store store(host, 0, 0, 1, kStoreTimeout, kNoAgent);
    EXPECT_EQ(listening_at(store.port()), std::vector<std::string>{"0100007F"});
  }
}

TEST(StoreAgent, AllRanksAreClientsAndAttemptsDoNotMix) {
  c10d::TCPStore agent(kLoopback, served());
  // In the first attempt rank 1 had opened its store and rank 0 had not.
  for (const std::int64_t attempt : {0, 1}) {
    const Elastic elastic{.agent_serves = true, .attempt = attempt};
    Store second(kLoopback, agent.getPort(), 1, 2, kStoreTimeout, elastic);
    if (attempt == 0) {
      continue;
    }
    auto other = std::async(std::launch::async, [&] { share_and_check(second, 1, 128); });
    Store first(kLoopback, agent.getPort(), 0, 2, kStoreTimeout, elastic);
    share_and_check(first, 0, 128);
    other.get();
  }
}

TEST(StoreAgent, IsReadFromTheEnvironment) {
  using Value = std::optional<std::string>;
  const auto with = [](const Value& agent, const Value& attempt) {
    const testing::WithVariables variables{
        {"TORCHELASTIC_USE_AGENT_STORE", agent}, {"TORCHELASTIC_RESTART_COUNT", attempt}};
    return elastic_from_env();
  };
  EXPECT_TRUE(with("True", "2").agent_serves);
  EXPECT_EQ(with("True", "2").attempt, 2);
  EXPECT_FALSE(with("False", "").agent_serves);
  EXPECT_EQ(with("False", "").attempt, 0);
  EXPECT_FALSE(with({}, {}).agent_serves);
}

TEST(StoreFails, WhereNobodyServes) {
  int port = 0;
  {
    // A port that was free a moment ago.
    const Store gone(kLoopback, 0, 0, 1, kStoreTimeout, kNoAgent);
    port = gone.port();
  }
  expect_error(
      [&] { Store(kLoopback, port, 1, 2, kUnanswered, kNoAgent); }, ErrorKind::PeerLost,
      {address_of(port), "rank 1 found nobody there within 0.2 s"});
}

TEST(StoreFails, WhereWhoeverListensSaysNothing) {
  const Socket silent = Socket::listen(kLoopback);
  expect_error(
      [&] { Store(kLoopback, silent.port(), 1, 2, kUnanswered, kNoAgent); }, ErrorKind::PeerLost,
      {address_of(silent.port()), "rank 1 found nobody there within 0.2 s (no answer)"});
}

TEST(StoreFails, WhereThePortIsTaken) {
  const int taken = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  if (bind(taken, raw, length) != 0 || listen(taken, 1) != 0 ||
      getsockname(taken, raw, &length) != 0) {
    close(taken);
    GTEST_SKIP() << "no IPv6 here";
  }
  const int port = ntohs(address.sin6_port);
  expect_error(
      [&] { Store(kLoopback, port, 0, 2, kUnanswered, kNoAgent); }, ErrorKind::Config,
      {"cannot serve on " + address_of(port)});
  close(taken);
}

TEST(StoreFails, WhereRankZeroGivesNothing) {
  const Store first(kLoopback, 0, 0, 2, kStoreTimeout, kNoAgent);
  Store second(kLoopback, first.port(), 1, 2, kUnanswered, kNoAgent);
  int value = 0;
  expect_error(
      [&] { second.share(&value, sizeof value); }, ErrorKind::PeerLost,
      {address_of(first.port()), "for rank 0 to give its value"});
}

TEST(StoreFails, WhereRankZerosServerIsGone) {
  auto first = std::make_unique<Store>(kLoopback, 0, 0, 2, kStoreTimeout, kNoAgent);
  Store second(kLoopback, first->port(), 1, 2, kStoreTimeout, kNoAgent);
  first.reset();
  int value = 0;
  expect_error([&] { second.share(&value, sizeof value); }, ErrorKind::PeerLost);
}

TEST(StoreFails, WhereMembersShareDifferentSizes) {
  Store first(kLoopback, 0, 0, 2, kStoreTimeout, kNoAgent);
  auto other = std::async(std::launch::async, [&] {
    Store second(kLoopback, first.port(), 1, 2, kStoreTimeout, kNoAgent);
    std::int64_t value = 0;
    expect_error(
        [&] { second.share(&value, sizeof value); }, ErrorKind::Config,
        {"expected 8 bytes from rank 0, got 4"});
  });
  std::int32_t value = 0;
  first.share(&value, sizeof value);
  other.get();
}

TEST(StoreFails, WithAnImpossiblePortOrRank) {
  const auto expect_refused = [](int port, int rank, int size, int line = __builtin_LINE()) {
    expect_error(
        [&] { Store(kLoopback, port, rank, size, kUnanswered, kNoAgent); }, ErrorKind::Config, {},
        __FILE__, line);
  };
  expect_refused(0, 1, 2);
  expect_refused(-1, 0, 2);
  expect_refused(65536, 0, 2);
  expect_refused(29500, 2, 2);
}

TEST(Share, OverACommunicator) {
  run_workers(3, kStoreTimeout, [](Communicator& comm) {
    const ShareBytes share = share_over(comm);
    for (const std::size_t bytes : {1, 128, 70001}) {
      Values values = values_of(comm.rank(), bytes);
      share(values.data(), values.size());
      EXPECT_EQ(values, values_of(0, bytes));
    }
  });
}

}  // namespace
}  // namespace abtrain::comm
