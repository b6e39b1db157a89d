// The devices that this process may compute on: CPU cores and CUDA devices.
//
// The number of cores respects the affinity mask and the cgroup's quota, so a
// container or a Slurm step sees only its share. Nothing here fails without a
// CUDA driver: there are no CUDA devices then.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace abtrain::device {

struct DeviceInfo {
  c10::Device device;
  std::string name;
  std::int64_t memory_bytes = 0;
  // The hardware for matrix products in bf16, such as "AMX-BF16"; "" if they are emulated.
  std::string bf16 = {};
  std::string id = {};  // a GPU's UUID, the same in every process; "" for the CPU
};

// The number of cores that this process may use; with a quota it may be a fraction.
double core_limit();
// core_limit(), rounded up to a whole number of at least 1.
int cpu_cores();

// The number of the first core that this process may use.
int first_core();

// The smallest limits of the cgroups that a process belongs to and of all groups above them.
struct CgroupLimits {
  double cores = 0;               // 0: none
  std::int64_t memory_bytes = 0;  // 0: none
};
// `process`: the list of a process's cgroups. `mount`: where cgroups of version 2, version 1 or
// both are mounted.
CgroupLimits cgroup_limits(
    const std::filesystem::path& process = "/proc/self/cgroup",
    const std::filesystem::path& mount = "/sys/fs/cgroup");

DeviceInfo cpu_device();
std::vector<DeviceInfo> cuda_devices();
// The DeviceInfo of one of the devices above. Throws std::logic_error for any other device.
DeviceInfo info_of(const c10::Device& device);

// The device that a configuration asks for. Auto: a GPU if there is one, otherwise the CPU.
enum class DeviceChoice { Auto, Cpu, Cuda };

// Returns the device of a worker. The workers of a host (0, 1, ...) take its CUDA devices in turn.
// Throws Error(MissingInput) if a CUDA device is wanted and there is none.
c10::Device pick_device(DeviceChoice wanted, int worker = 0);

}  // namespace abtrain::device
