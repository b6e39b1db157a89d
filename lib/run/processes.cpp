#include "run/processes.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/control_channel.h"
#include "comm/failure.h"
#include "comm/mpi.h"

namespace abtrain::run {

namespace {

// A worker that was told of a failure and does not come to its end within this
// time hangs somewhere: it is ended.
constexpr std::chrono::seconds kGrace{20};

int code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.exit_code();
  } catch (...) {
    return 1;
  }
}

bool is_stop(const std::exception_ptr& error) {
  return code_of(error) == static_cast<int>(ErrorKind::Stopped);
}

// Errors with a place of their own are printed as they are.
bool is_located(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const LocatedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

[[noreturn]] void leave(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

void record_failure(
    const std::string& folder,
    int exit_code,
    const std::string& message,
    int worker) noexcept {
  try {
    if (folder.empty() || !std::filesystem::is_directory(folder)) {
      return;
    }
    const std::time_t now = std::time(nullptr);
    char time[32];
    std::strftime(time, sizeof(time), "%FT%TZ", std::gmtime(&now));
    const nlohmann::ordered_json json = {
        {"exit_code", exit_code},
        {"message", message},
        {"worker", worker},
        {"host", host_name()},
        {"time", time}};
    atomic_write(folder + "/failure.json", json.dump(2) + "\n");
  } catch (...) {
    // The message is on standard error too.
  }
}

struct Processes::State {
  explicit State(Log& where) : log(where) {}
  Log& log;
  std::unique_ptr<comm::MpiWorld> mpi;
  std::unique_ptr<comm::Communicator> shared;  // by which texts are shared
  std::unique_ptr<comm::ControlChannel> channel;
  bool quiet = false;  // another worker prints the error
  std::mutex mutex;
  std::string folder;

  void on_failure(const comm::Launch& launch, std::exception_ptr cause);
};

// In the channel's thread: the worker itself may be in the middle of a step.
void Processes::State::on_failure(
    const comm::Launch& launch,
    std::exception_ptr cause) {
  const int code = code_of(cause);
  const std::string message = comm::message_of(cause);
  if (mpi) {
    mpi->abort(cause);
  }
  // A worker that failed has told so itself; one that is gone cannot.
  if (code == static_cast<int>(ErrorKind::PeerLost) &&
      (launch.rank == 0 || message.starts_with("worker 0 "))) {
    log.live("");
    std::cerr << str("abtrain: ", message, "\n") << std::flush;
    const std::lock_guard lock(mutex);
    record_failure(folder, code, message, launch.rank);
  }
  std::thread([code] {
    std::this_thread::sleep_for(kGrace);
    leave(code);
  }).detach();
}

Processes::Processes(const comm::Launch& launch, Log& log)
    : launch_(launch), state_(std::make_unique<State>(log)) {
  ABT_CHECK(
      launch.has_mpi,
      Config,
      launch.text(),
      ", but nothing of MPI: workers on CPUs need `mpirun` or `srun "
      "--mpi=pmix`");
  state_->mpi = std::make_unique<comm::MpiWorld>(launch.rank, launch.size);
  state_->shared = state_->mpi->communicator();
  comm::ControlOptions options;
  options.rank = launch.rank;
  options.size = launch.size;
  options.share = [this](void* data, std::size_t bytes) {
    at::Tensor buffer =
        at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
    std::memcpy(buffer.data_ptr(), data, bytes);
    state_->shared->broadcast(buffer, 0, comm::Purpose::Metrics).wait();
    std::memcpy(data, buffer.const_data_ptr(), bytes);
  };
  options.wanted = [] { return StopSignals::requested() != 0; };
  options.on_failure = [this](std::exception_ptr cause) {
    state_->on_failure(launch_, std::move(cause));
  };
  state_->channel = std::make_unique<comm::ControlChannel>(std::move(options));
}

Processes::~Processes() = default;

comm::Control& Processes::control() {
  return *state_->channel;
}

std::unique_ptr<comm::Communicator> Processes::world(double timeout) {
  state_->mpi->set_timeout(timeout);
  return state_->mpi->communicator();
}

void Processes::agree(std::exception_ptr mine) {
  try {
    state_->channel->agree(mine);
  } catch (...) {
    // Who had the error prints it, once.
    state_->quiet =
        mine == nullptr ||
        comm::message_of(std::current_exception()) != comm::message_of(mine);
    throw;
  }
}

void Processes::all_or_none(const std::function<void()>& body) {
  std::exception_ptr mine;
  try {
    body();
  } catch (...) {
    mine = std::current_exception();
  }
  agree(mine);
}

std::string Processes::share(const std::string& text) {
  at::Tensor length = at::empty({1}, at::kLong);
  *length.data_ptr<std::int64_t>() = static_cast<std::int64_t>(text.size());
  state_->shared->broadcast(length, 0, comm::Purpose::Metrics).wait();
  at::Tensor buffer = at::empty({length.item<std::int64_t>()}, at::kByte);
  if (first()) {
    std::memcpy(buffer.data_ptr(), text.data(), text.size());
  }
  state_->shared->broadcast(buffer, 0, comm::Purpose::Metrics).wait();
  return {static_cast<const char*>(buffer.const_data_ptr()), buffer.nbytes()};
}

void Processes::set_folder(const std::string& folder) {
  const std::lock_guard lock(state_->mutex);
  state_->folder = folder;
}

void Processes::run(const std::function<int()>& body) {
  State& s = *state_;
  int code = 0;
  try {
    code = body();
  } catch (...) {
    const auto error = std::current_exception();
    code = code_of(error);
    s.log.live("");
    if (!is_stop(error)) {
      end_badly(error);
    }
    if (first()) {
      std::cerr << "abtrain: " << comm::message_of(error) << '\n';
    }
  }
  s.channel->close();
  s.shared.reset();
  s.mpi.reset();
  leave(code);
}

void Processes::end_badly(const std::exception_ptr& error) {
  State& s = *state_;
  const int code = code_of(error);
  if (s.quiet) {
    leave(code);
  }
  const auto cause = s.channel->cause();
  if (cause) {
    leave(code_of(cause));  // told by others, and printed there
  }
  s.channel->fail(error);
  std::cerr << (first() ? is_located(error) ? std::string() : "abtrain: "
                        : str("abtrain: worker ",
                              launch_.rank,
                              " on ",
                              host_name(),
                              ": "))
            << comm::message_of(error) << '\n';
  {
    const std::lock_guard lock(s.mutex);
    record_failure(s.folder, code, comm::message_of(error), launch_.rank);
  }
  // A launcher ends all processes when one has gone: the others may want to
  // say their last first.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  leave(code);
}

}  // namespace abtrain::run
