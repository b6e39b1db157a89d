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

void tighten(auto& limit, auto other) {
  if (other > 0 && (limit == 0 || other < limit)) {
    limit = other;
  }
}

// Reads the limits of one cgroup. Version 2 of cgroups has "max 100000" or "250000 100000" in one
// file for the cores. Version 1 has the two numbers in separate files, with -1 for no limit. A
// missing file counts as no limit, as does a word such as "max".
void add_limits(const fs::path& group, CgroupLimits& limits) {
  double quota = 0;
  double period = 0;
  if (std::ifstream file(group / "cpu.max"); file) {
    file >> quota >> period;
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period;
  }
  if (quota > 0 && period > 0) {
    tighten(limits.cores, quota / period);
  }
  for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
    std::int64_t bytes = 0;
    if (std::ifstream(group / name) >> bytes) {
      tighten(limits.memory_bytes, bytes);
    }
  }
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

CgroupLimits cgroup_limits(const fs::path& process, const fs::path& mount) {
  CgroupLimits limits;
  std::ifstream file(process);
  for (std::string line; std::getline(file, line);) {
    const auto fields = split_text(line, ':');
    if (fields.size() != 3) {
      continue;
    }
    // Version 2 names no controllers. Systems with both versions mount it in "unified".
    std::vector<std::string> folders = {"", "unified"};
    if (!fields[1].empty()) {
      folders = split_text(fields[1], ',');
      folders.push_back(fields[1]);
    }
    for (const std::string& folder : folders) {
      for (fs::path group = fs::path(fields[2]).relative_path();; group = group.parent_path()) {
        add_limits(mount / folder / group, limits);
        if (group.empty()) {
          break;
        }
      }
    }
  }
  return limits;
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
  const double cores = std::max(1, affinity_cores());
  const double quota = cgroup_limits().cores;
  return quota > 0 ? std::min(cores, quota) : cores;
}

int cpu_cores() {
  return std::max(1, static_cast<int>(std::ceil(core_limit())));
}

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
  info.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  tighten(info.memory_bytes, cgroup_limits().memory_bytes);
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
