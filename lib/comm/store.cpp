#include "comm/store.h"

#include <c10/util/Flags.h>
#include <signal.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "base/socket.h"
#include "base/text.h"
#include "comm/control/secret.h"
#include "comm/control/wire.h"

C10_DECLARE_int(caffe2_log_level);

namespace abtrain::comm {

namespace {

// The first line of the message, without the backtrace of LibTorch's errors.
std::string reason_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
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
  c10::intrusive_ptr<c10d::TCPStore> store = {};
  std::string prefix = {};  // prefix of all this run's keys
  std::int64_t shared = 0;

  // Runs a request; whatever LibTorch throws becomes Error(PeerLost).
  template <class Request>
  auto ask(const std::string& what, const Request& request) {
    try {
      return request();
    } catch (const std::exception& error) {
      throw Error(
          ErrorKind::PeerLost, formatted(
                                   "store at {}: rank {} waited at most {} s for {}: {}", address,
                                   rank, seconds, what, reason_of(error)));
    }
  }

  // If `host` is an address of this host, listens on that address only.
  Socket listen(const std::string& host, int port) const {
    try {
      return Socket::listen(own_address_of(host), port);
    } catch (const Error& error) {
      throw Error(
          ErrorKind::Config, formatted(
                                 "store: rank 0 cannot serve on {}: {}. Does another process have "
                                 "rank 0, or use the port?",
                                 address, error.what()));
    }
  }

  void connect(const std::string& host, int port, const Elastic& elastic) {
    c10d::TCPStoreOptions options;
    options.isServer = rank == 0 && !elastic.agent_serves;
    options.waitWorkers = false;  // only share() waits
    // At least 1 ms, because LibTorch reads 0 as no time-out at all; at most 1e9 ms (about 11
    // days).
    options.timeout =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(seconds * 1e3, 1.0, 1e9)));
    // ask() reports errors; LibTorch would also log each one with a backtrace.
    static std::once_flag once;
    std::call_once(once, [] {
      if (!env("TORCH_CPP_LOG_LEVEL")) {
        FLAGS_caffe2_log_level = 3;  // fatal errors only
      }
    });
    Socket listener;
    if (options.isServer) {
      listener = listen(host, port);
      port = listener.port();
      options.masterListenFd = listener.release();  // the server closes it
    }
    options.port = static_cast<std::uint16_t>(port);
    // LibTorch would try IPv6 first for "localhost".
    const std::string server = host == "localhost" ? "127.0.0.1" : host;
    // LibTorch's client can wait for twice the time-out, or forever for an answer. So it connects
    // on a thread of its own, which is abandoned when the time-out has passed.
    std::packaged_task<decltype(store)()> task(
        [server, options] { return c10::make_intrusive<c10d::TCPStore>(server, options); });
    auto result = task.get_future();
    std::thread(std::move(task)).detach();
    std::string why = "no answer";
    if (result.wait_for(options.timeout) == std::future_status::ready) {
      try {
        store = result.get();
        return;
      } catch (const std::exception& error) {
        why = reason_of(error);
      }
    }
    throw Error(
        ErrorKind::PeerLost, formatted(
                                 "store at {}: rank {} found nobody there within {} s ({}). Start "
                                 "rank 0 too, and all ranks with the same MASTER_ADDR and "
                                 "MASTER_PORT; no firewall may block that port",
                                 address, rank, seconds, why));
  }

  // Numbers this run, for the prefix of its keys: one store may serve several runs in turn (under
  // torchrun, all commands of a script). Each rank takes the first number that it has not used, and
  // throws if the process that used an earlier one may still run.
  void take_place(const Elastic& elastic) {
    // The agent's store survives a restart, so keys of an earlier attempt must not be mistaken for
    // keys of this one.
    const std::string attempt = formatted("abtrain/{}/", elastic.attempt);
    std::array<unsigned char, 16> id;
    fill_random(id.data(), id.size());
    const std::string mine =
        formatted("{} {} {}", host_name(), ::getpid(), std::string(id.begin(), id.end()));
    for (std::int64_t nth = 1;; ++nth) {
      const auto value = ask("an answer", [&] {
        return store->compareSet(
            formatted("{}rank_{}/{}", attempt, rank, nth), {}, {mine.begin(), mine.end()});
      });
      const std::string holder(value.begin(), value.end());
      if (holder == mine) {
        prefix = formatted("{}{}/", attempt, nth);
        return;
      }
      std::istringstream words(holder);
      std::string host;
      pid_t process = 0;
      words >> host >> process;
      const bool has_ended = host == host_name() &&
                             (process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH));
      ABT_CHECK(
          has_ended, Config,
          "store at {}: process {} on {} has rank {} already: expected each rank "
          "from 0 to {} once",
          address, process, printable(host), rank, size - 1);
    }
  }
};

Store::Store(
    const std::string& host, int port, int rank, int size, double timeout_seconds,
    const Elastic& elastic)
    : impl_(std::make_shared<Impl>(host_and_port(host, port), rank, size, timeout_seconds)) {
  const bool chosen = port == 0 && rank == 0 && !elastic.agent_serves;
  ABT_CHECK(
      port < 65536 && (port > 0 || chosen), Config,
      "store: expected a port from 1 to 65535, got {}", port);
  ABT_CHECK(rank >= 0 && rank < size, Config, "store: rank {} of {}", rank, size);
  const std::string unknown = why_unknown(host);
  ABT_CHECK(
      unknown.empty(), PeerLost, "store at {}: this host ({}) does not know the name '{}' ({})",
      impl_->address, host_name(), host, unknown);
  impl_->connect(host, port, elastic);
  impl_->address = host_and_port(host, this->port());
  impl_->take_place(elastic);
}

void Store::share(void* data, std::size_t bytes) {
  Impl& s = *impl_;
  const std::string key = formatted("{}share_{}", s.prefix, s.shared++);
  if (s.rank == 0) {
    const auto* begin = static_cast<const std::uint8_t*>(data);
    s.ask("the store to take a value", [&] {
      s.store->set(key, std::vector<std::uint8_t>(begin, begin + bytes));
    });
    return;
  }
  const auto value = s.ask("rank 0 to give its value", [&] { return s.store->get(key); });
  ABT_CHECK(
      value.size() == bytes, Config, "store at {}: rank {} expected {} bytes from rank 0, got {}",
      s.address, s.rank, bytes, value.size());
  std::copy(value.begin(), value.end(), static_cast<std::uint8_t*>(data));
}

int Store::port() const {
  return impl_->store->getPort();
}

}  // namespace abtrain::comm
