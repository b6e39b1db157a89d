// Runs tests on NCCL: a world of one where there is one GPU, a thread a GPU
// where there are more, or several ranks on one GPU where NCCL can. The tests compute on the
// CPU and only copy to and from GPUs, so they also run on the stand-ins for GPUs and NCCL.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "comm/nccl/world.h"
#include "comm/run_workers.h"
#include "device/devices.h"
#include "device/stream.h"
#include "stand_in/stand_in.h"

namespace abtrain::comm {

constexpr double kNcclTimeout = 60;
constexpr int kSharing = 23003;  // the first NCCL with several ranks on a GPU

// Empty where `ranks` workers can run here.
inline std::string lacking(int ranks) {
  const auto gpus = static_cast<int>(device::cuda_devices().size());
  if (nccl_version() == 0) {
    return "NCCL is not compiled in";
  }
  if (gpus == 0) {
    return "no CUDA device here";
  }
  if (gpus < ranks && nccl_version() < kSharing) {
    return formatted("one GPU a rank in NCCL {}: {} wanted, found {}", nccl_version(), ranks, gpus);
  }
  return "";
}

inline at::Device device_of(int rank) {
  const auto gpus = device::cuda_devices().size();
  return {at::kCUDA, static_cast<at::DeviceIndex>(rank % gpus)};
}

// Copies the values to this worker's GPU through a chain of copies that may still be queued.
inline at::Tensor on_gpu(const Communicator& comm, const at::Tensor& values) {
  at::Tensor moved = values.to(device_of(comm.rank()));
  for (int i = 0; i < (stand_in::is_here() ? 5 : 200); ++i) {
    moved = moved.clone();
  }
  return moved;
}

using Body = std::function<void(Communicator&, NcclWorld&, Communicator&)>;

// The body gets NCCL's communicator, its world and the local one beside it.
// Workers of a failed world are told, as the owner of a real run does.
inline void run_nccl(int ranks, double timeout, const Body& body) {
  if (static_cast<int>(device::cuda_devices().size()) < ranks) {
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  }
  std::mutex mutex;
  std::vector<NcclWorld*> worlds;
  run_workers(ranks, kNcclTimeout, [&](Communicator& local) {
    const at::Device device = device_of(local.rank());
    const device::OwnStream stream(device);
    const bool even_alone = true;
    const auto own =
        NcclWorld::start(local.rank(), ranks, device, timeout, share_over(local), even_alone);
    NcclWorld& world = *own;
    {
      const std::lock_guard lock(mutex);
      worlds.push_back(&world);
    }
    local.barrier();
    const auto comm = world.communicator();
    try {
      body(*comm, world, local);
    } catch (...) {
      const std::lock_guard lock(mutex);
      for (NcclWorld* each : worlds) {
        each->abort(std::current_exception());
      }
      std::erase(worlds, &world);
      throw;
    }
    const std::lock_guard lock(mutex);
    std::erase(worlds, &world);
  });
}

class GpuNcclRanks : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string lack = lacking(GetParam());
    if (!lack.empty()) {
      GTEST_SKIP() << lack;
    }
  }
};

}  // namespace abtrain::comm
