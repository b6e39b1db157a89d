#include "comm/store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/env.h"
#include "base/error.h"

namespace abtrain::comm {

namespace {

using Milliseconds = std::chrono::milliseconds;

// LibTorch takes 0 for no time-out at all, and a lifetime is long enough.
Milliseconds in_milliseconds(double seconds) {
  return Milliseconds(
      static_cast<std::int64_t>(std::clamp(seconds * 1e3, 1.0, 1e9)));
}

// The first line, without the backtrace that LibTorch's errors carry.
std::string reason_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text =
      torch ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

Elastic elastic_from_env() {
  return {
      .agent_serves = env("TORCHELASTIC_USE_AGENT_STORE") == "True",
      .attempt = env_integer("TORCHELASTIC_RESTART_COUNT").value_or(0)};
}

struct Store::Impl {
  std::string address;
  int rank;
  int size;
  double seconds;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::string prefix;  // of all keys
  std::int64_t shared = 0;

  // Runs a request; whatever LibTorch throws becomes Error(PeerLost).
  template <class Request>
  auto ask(const std::string& what, const Request& request) {
    try {
      return request();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(
          ErrorKind::PeerLost,
          str("store at ",
              address,
              ": rank ",
              rank,
              " waited at most ",
              seconds,
              " s for ",
              what,
              ": ",
              reason_of(error)));
    }
  }

  void connect(const std::string& host, int port, const Elastic& elastic);
  void give(const std::string& key, const void* data, std::size_t bytes);
  void take(const std::string& key, void* data, std::size_t bytes);
};

void Store::Impl::connect(
    const std::string& host,
    int port,
    const Elastic& elastic) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(port);
  options.isServer = rank == 0 && !elastic.agent_serves;
  options.waitWorkers = false;  // share() waits where it matters
  options.timeout = in_milliseconds(seconds);
  // Two stores of one process on one port share the server, as torch's do.
  options.multiTenant = true;
  ask("the server", [&] {
    try {
      store = c10::make_intrusive<c10d::TCPStore>(host, options);
    } catch (const c10::DistNetworkError& error) {
      // LibTorch has one error for a taken port and a server that is away.
      const std::string reason = reason_of(error);
      ABT_CHECK(
          reason.find("server socket") == std::string::npos,
          Config,
          "store: rank 0 cannot serve on ",
          address,
          ": ",
          reason);
      throw;
    }
  });
  // The agent's store outlives a restart: old keys must not be taken for new
  // ones. Nor those of a store that this run opened before.
  const std::string attempt = str("abtrain/", elastic.attempt, "/");
  const auto nth = ask("an answer", [&] {
    return store->add(str(attempt, "stores_of_rank_", rank), 1);
  });
  prefix = str(attempt, nth, "/");
}

void Store::Impl::give(
    const std::string& key,
    const void* data,
    std::size_t bytes) {
  const auto* begin = static_cast<const std::uint8_t*>(data);
  ask("the store to take a value", [&] {
    store->set(key, std::vector<std::uint8_t>(begin, begin + bytes));
  });
  if (size > 1) {
    const std::string all = key + "/all";
    ask(str("the ", size - 1, " other ranks to come"),
        [&] { store->wait({all}, in_milliseconds(seconds)); });
  }
}

void Store::Impl::take(const std::string& key, void* data, std::size_t bytes) {
  const auto value =
      ask("rank 0 to give its value", [&] { return store->get(key); });
  ask("the store to count its readers", [&] {
    if (store->add(key + "/taken", 1) == size - 1) {
      store->set(key + "/all", std::vector<std::uint8_t>{1});
    }
  });
  ABT_CHECK(
      value.size() == bytes,
      Config,
      "store at ",
      address,
      ": rank ",
      rank,
      " expected ",
      bytes,
      " bytes from rank 0, got ",
      value.size());
  std::copy(value.begin(), value.end(), static_cast<std::uint8_t*>(data));
}

Store::Store(
    const std::string& host,
    int port,
    int rank,
    int size,
    double timeout_seconds,
    const Elastic& elastic)
    : impl_(std::make_unique<Impl>()) {
  const bool chosen = port == 0 && rank == 0 && !elastic.agent_serves;
  ABT_CHECK(
      port < 65536 && (port > 0 || chosen),
      Config,
      "store: expected a port from 1 to 65535, got ",
      port);
  ABT_CHECK(
      rank >= 0 && rank < size, Config, "store: rank ", rank, " of ", size);
  impl_->address = str(host, ":", port);
  impl_->rank = rank;
  impl_->size = size;
  impl_->seconds = timeout_seconds;
  impl_->connect(host, port, elastic);
  impl_->address = str(host, ":", this->port());
}

Store::~Store() = default;

void Store::share(void* data, std::size_t bytes) {
  const std::string key = str(impl_->prefix, "share_", impl_->shared++);
  if (impl_->rank == 0) {
    impl_->give(key, data, bytes);
  } else {
    impl_->take(key, data, bytes);
  }
}

int Store::port() const {
  return impl_->store->getPort();
}

}  // namespace abtrain::comm
