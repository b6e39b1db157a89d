#include "train/local_workers.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <vector>

#include "comm/nccl/world.h"
#include "comm/run_workers.h"

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

void run_local_workers(
    BackEnd back_end,
    int workers,
    double timeout_seconds,
    const std::function<at::Device(int worker)>& device_of,
    const std::function<void(comm::Communicator&, at::Device)>& body) {
  NcclWorlds worlds;
  comm::run_workers(workers, timeout_seconds, [&](comm::Communicator& threads) {
    if (back_end == BackEnd::Local) {
      body(threads, device_of(0));
      return;
    }
    const at::Device device = device_of(threads.rank());
    comm::NcclWorld world(
        threads.rank(),
        threads.size(),
        device,
        timeout_seconds,
        comm::share_over(threads));
    worlds.add(&world);
    try {
      body(*world.communicator(), device);
    } catch (...) {
      worlds.abort(std::current_exception());
      worlds.remove(&world);
      throw;
    }
    worlds.remove(&world);
  });
}

}  // namespace abtrain::train
