#include "train/workers/local_workers.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/mapped.h"
#include "base/signals.h"
#include "base/socket.h"
#include "comm/failure.h"
#include "comm/nccl/world.h"
#include "comm/run_workers.h"
#include "device/devices.h"

namespace abtrain::train {

namespace {

// The NCCL worlds of this process. If one worker fails, all are aborted;
// otherwise the others would wait on their GPUs until the time-out.
class NcclWorlds {
 public:
  void add(comm::NcclWorld* world) {
    const std::lock_guard lock(mutex_);
    worlds_.push_back(world);
    if (cause_) {
      world->abort(cause_);
    }
  }
  void remove(comm::NcclWorld* world) {
    const std::lock_guard lock(mutex_);
    std::erase(worlds_, world);
  }
  void abort(const std::exception_ptr& cause) {
    const std::lock_guard lock(mutex_);
    cause_ = cause_ ? cause_ : cause;
    for (comm::NcclWorld* world : worlds_) {
      world->abort(cause);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<comm::NcclWorld*> worlds_;
  std::exception_ptr cause_;
};

}  // namespace

at::Device LocalWorkers::find_device(device::DeviceChoice wanted, WorkerPlace& place) {
  const at::Device device = device::pick_device(wanted);
  place.on_gpu = device.is_cuda();
  const auto gpus = mapped(device::cuda_devices(), &device::DeviceInfo::id);
  place.gpus = static_cast<int>(std::set<std::string>(gpus.begin(), gpus.end()).size());
  return device;
}

std::vector<std::string> LocalWorkers::hosts() const {
  return std::vector<std::string>(static_cast<std::size_t>(workers_in_process), host_name());
}

void LocalWorkers::run_workers(
    const config::RunOptions& options, BackEnd back_end, at::Device device, const Work& work) {
  const double timeout = options.train.timeout;
  comm::LocalControl control(workers_in_process, [] { return StopSignals::requested() != 0; });
  NcclWorlds worlds;
  comm::run_workers(workers_in_process, timeout, [&](comm::Communicator& threads) {
    std::shared_ptr<comm::NcclWorld> world;
    try {
      if (back_end == BackEnd::Local) {
        work(threads, device, control);
      } else {
        const at::Device own = device::pick_device(options.device, threads.rank());
        world = comm::NcclWorld::start(
            threads.rank(), threads.size(), own, timeout, comm::share_over(threads));
        worlds.add(world.get());
        work(*world->communicator(), own, control);
      }
    } catch (...) {
      worlds.abort(std::current_exception());
      worlds.remove(world.get());
      int none = -1;
      if (!comm::is_echo(std::current_exception())) {
        failed_.compare_exchange_strong(none, threads.rank());
      }
      throw;
    }
    worlds.remove(world.get());
  });
}

void LocalWorkers::record(const std::string& folder, const std::exception_ptr& error) {
  if (comm::exit_code_of(error) != static_cast<int>(ErrorKind::Stopped)) {
    record_failure(folder, error, comm::worker_of(error, std::max(0, failed_.load())), host_name());
  }
}

}  // namespace abtrain::train
