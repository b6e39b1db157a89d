// What this process may compute on: CPU cores and CUDA devices.
//
// Cores honour the affinity mask and the cgroup's quota, so a container or a
// Slurm step sees its own share. Nothing here fails where the CUDA driver is
// absent: there are then no CUDA devices.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace abtrain::device {

struct DeviceInfo {
  c10::Device device;
  std::string name;
  std::int64_t memory_bytes = 0;
  std::string id = {};  // of a GPU: its UUID, the same for every process
};

// Cores that this process may use, at least 1.
int cpu_cores();

// The CPU quota in cores, the smallest on the way from `group` up to `root`
// (a mounted cgroup tree, version 2 or 1); 0 where none is set.
double cgroup_quota(
    const std::filesystem::path& root,
    const std::filesystem::path& group);

DeviceInfo cpu_device();
std::vector<DeviceInfo> cuda_devices();

// auto (a CUDA device, else the CPU) | cpu | cuda | cuda:N. With auto and cuda
// the workers of a host (0, 1, ...) take its devices in turn.
// Error(MissingInput) where the device is not there, Error(Config) for any
// other text.
c10::Device pick_device(std::string_view wanted, int worker = 0);

}  // namespace abtrain::device
