#include "device/devices.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/error.h"
#include "device/tensor_text.h"

namespace abtrain::device {

namespace {

namespace fs = std::filesystem;

// Returns the CPU quota of one cgroup in cores, or 0 for no limit. Version 2 of cgroups has "max
// 100000" or "250000 100000" in one file. Version 1 has the two numbers in separate files, with -1
// for no limit. A missing file counts as no limit, as does a word such as "max".
double quota_of(const fs::path& group) {
  double quota = 0;
  double period = 0;
  if (std::ifstream file(group / "cpu.max"); file) {
    file >> quota >> period;
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

// Returns the cgroup of this process, from the line "0::/path" of version 2 or from the line of
// version 1's controller "cpu".
fs::path own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto fields = split_text(line, ':');
    if (fields.size() == 3 &&
        (fields[1].empty() || fields[1].find("cpu,") == 0 || fields[1] == "cpu")) {
      return fs::path(fields[2]).relative_path();
    }
  }
  return {};
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return CPU_COUNT(&set);
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

double cgroup_quota(const fs::path& root, const fs::path& group) {
  double smallest = 0;
  for (fs::path path = group;; path = path.parent_path()) {
    const double quota = quota_of(root / path);
    if (quota > 0 && (smallest == 0 || quota < smallest)) {
      smallest = quota;
    }
    if (path.empty()) {
      return smallest;
    }
  }
}

int first_core() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int core = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    while (core < CPU_SETSIZE && !CPU_ISSET(core, &set)) {
      ++core;
    }
  }
  return core;
}

double core_limit() {
  const fs::path mount = "/sys/fs/cgroup";
  double cores = std::max(1, affinity_cores());
  for (const fs::path& root : {mount, mount / "cpu"}) {
    const double quota = cgroup_quota(root, own_group());
    if (quota > 0) {
      cores = std::min(cores, quota);
    }
  }
  return cores;
}

int cpu_cores() {
  return std::max(1, static_cast<int>(std::ceil(core_limit())));
}

namespace {

// The smallest memory limit in bytes among this process's cgroups (version 2,
// or version 1 as mounted in a container), at most `physical`.
std::int64_t memory_limit(std::int64_t physical) {
  const fs::path mount = "/sys/fs/cgroup";
  std::vector<fs::path> files = {mount / "memory/memory.limit_in_bytes"};
  for (fs::path group = own_group();; group = group.parent_path()) {
    files.push_back(mount / group / "memory.max");
    if (group.empty()) {
      break;
    }
  }
  for (const fs::path& path : files) {
    std::int64_t limit = 0;  // the word "max" counts as no limit
    if (std::ifstream(path) >> limit && limit > 0) {
      physical = std::min(physical, limit);
    }
  }
  return physical;
}

}  // namespace

DeviceInfo cpu_device() {
  DeviceInfo info{c10::Device(c10::kCPU), "CPU"};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) {
      continue;
    }
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    const std::string_view value = trim(std::string_view(line).substr(colon + 1));
    if (key == "model name") {
      info.name = value;
    } else if (key == "flags" || key == "Features") {  // "Features" on Arm
      const std::vector<std::string> features = split_text(value, ' ');
      for (const auto& [feature, name] :
           {std::pair("amx_bf16", "AMX-BF16"), std::pair("avx512_bf16", "AVX512-BF16"),
            std::pair("bf16", "BF16")}) {
        if (info.bf16.empty() && std::ranges::find(features, feature) != features.end()) {
          info.bf16 = name;
        }
      }
      break;
    }
  }
  info.memory_bytes =
      memory_limit(static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  return info;
}

DeviceInfo info_of(const c10::Device& device) {
  const std::vector<DeviceInfo> all =
      device.is_cpu() ? std::vector<DeviceInfo>{cpu_device()} : cuda_devices();
  const auto found = std::ranges::find(all, device, &DeviceInfo::device);
  ABT_ASSERT(found != all.end(), "there is no device {}", device);
  return *found;
}

c10::Device pick_device(DeviceChoice wanted, int worker) {
  const auto devices = wanted == DeviceChoice::Cpu ? std::vector<DeviceInfo>() : cuda_devices();
  if (devices.empty()) {
    ABT_CHECK(
        wanted != DeviceChoice::Cuda, MissingInput,
        "device: cuda was requested, but no CUDA devices were found (`abtrain doctor` explains "
        "why; `device: cpu` needs none)");
    return c10::Device(c10::kCPU);
  }
  return devices[static_cast<std::size_t>(worker) % devices.size()].device;
}

}  // namespace abtrain::device
