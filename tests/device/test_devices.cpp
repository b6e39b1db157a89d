#include "device/devices.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/linalg_eigh.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "device/cuda/check.h"
#include "device/stream.h"
#include "device/tensor_text.h"
#include "device/tune.h"
#include "error_of.h"
#include "temp_folder.h"

namespace abtrain::device {
namespace {

namespace fs = std::filesystem;

class Cgroups : public ::testing::Test {
 protected:
  CgroupLimits limits(const std::string& groups) {
    folder_.add("process", groups);
    return cgroup_limits(folder_.path() + "/process", folder_.path() + "/mount");
  }
  // The path is one in the mounted tree.
  void add(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(folder_.path() + "/mount/" + path).parent_path());
    folder_.add("mount/" + path, text);
  }
  TempFolder folder_;
};

TEST_F(Cgroups, NoFilesMeanNoLimits) {
  EXPECT_EQ(limits("0::/a/b\n").cores, 0);
  EXPECT_EQ(limits("0::/a/b\n").memory_bytes, 0);
  EXPECT_EQ(limits("").cores, 0);
}

TEST_F(Cgroups, TheSmallestOnTheWayUpCounts) {
  add("a/b/cpu.max", "max 100000\n");
  add("a/b/memory.max", "max\n");
  EXPECT_EQ(limits("0::/a/b\n").cores, 0);
  EXPECT_EQ(limits("0::/a/b\n").memory_bytes, 0);
  add("a/cpu.max", "250000 100000\n");
  add("a/memory.max", "3000000000\n");
  EXPECT_EQ(limits("0::/a/b\n").cores, 2.5);
  EXPECT_EQ(limits("0::/a/b\n").memory_bytes, 3'000'000'000);
  add("cpu.max", "150000 100000\n");
  add("memory.max", "5000000000\n");
  EXPECT_EQ(limits("0::/a/b\n").cores, 1.5);
  EXPECT_EQ(limits("0::/a/b\n").memory_bytes, 3'000'000'000);
}

// Slurm's groups on systems with version 1. The order of controllers that share a tree varies, and
// the tree may be mounted under their joint name only.
TEST_F(Cgroups, VersionOne) {
  const std::string groups = "7:memory:/slurm/job_1\n5:cpuacct,cpu:/slurm/job_1\n";
  add("cpu/slurm/job_1/cpu.cfs_quota_us", "-1\n");
  add("cpu/slurm/job_1/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits(groups).cores, 0);
  add("cpu/slurm/job_1/cpu.cfs_quota_us", "300000\n");
  add("memory/slurm/memory.limit_in_bytes", "4000000000\n");
  EXPECT_EQ(limits(groups).cores, 3);
  EXPECT_EQ(limits(groups).memory_bytes, 4'000'000'000);
  add("cpuacct,cpu/cpu.cfs_quota_us", "200000\n");
  add("cpuacct,cpu/cpu.cfs_period_us", "100000\n");
  add("memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limits(groups).cores, 2);
  EXPECT_EQ(limits(groups).memory_bytes, 4'000'000'000);
}

TEST_F(Cgroups, BothVersionsAtOnce) {
  add("unified/user/cpu.max", "400000 100000\n");
  add("cpu,cpuacct/cpu.cfs_quota_us", "500000\n");
  add("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits("4:cpu,cpuacct:/\n0::/user\n").cores, 4);
}

TEST(CpuCores, FollowTheAffinityMask) {
  int cores = 0;
  // On a thread of its own: the mask goes with it.
  std::thread([&] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all)) {
      ++first;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    cores = cpu_cores();
  }).join();
  EXPECT_EQ(cores, 1);
  EXPECT_GE(cpu_cores(), 1);
}

TEST(Devices, TheCpuHasANameAndMemory) {
  const DeviceInfo cpu = cpu_device();
  EXPECT_TRUE(cpu.device.is_cpu());
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_GT(cpu.memory_bytes, std::int64_t{1} << 28);
}

TEST(Devices, PickFollowsWhatIsThere) {
  EXPECT_TRUE(pick_device(DeviceChoice::Cpu).is_cpu());
  const auto devices = cuda_devices();
  EXPECT_EQ(pick_device(DeviceChoice::Auto).is_cuda(), !devices.empty());
  for (std::size_t worker = 0; worker < 2 * devices.size(); ++worker) {
    EXPECT_EQ(
        pick_device(DeviceChoice::Cuda, static_cast<int>(worker)),
        devices[worker % devices.size()].device);
  }
}

TEST(Devices, AGpuThatIsNotThereIsMissing) {
  if (!cuda_devices().empty()) {
    GTEST_SKIP() << "there is one";
  }
  expect_error(
      [&] { pick_device(DeviceChoice::Cuda); }, ErrorKind::MissingInput,
      {"device: cuda was requested"});
}

TEST(TensorText, IsThatOfLibTorch) {
  EXPECT_EQ(
      formatted("{} {} {}", at::kFloat, at::IntArrayRef({2, 3}), at::Device(at::kCUDA, 1)),
      "Float [2, 3] cuda:1");
}

TEST(Streams, AreNothingOnTheCpu) {
  const c10::Device cpu(c10::kCPU);
  const OwnStream stream(cpu);
  Event event = Event::record(cpu);
  const Event moved = std::move(event);
  EXPECT_NO_THROW(moved.order_after());
  EXPECT_NO_THROW(synchronize(cpu));
}

TEST(CudaCheck, ThrowsTheCallOnlyOnFailure) {
  EXPECT_NO_THROW(ABT_CUDA_CHECK(0));
  try {
    ABT_CUDA_CHECK(1 + 1);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).find("1 + 1"), 0u) << error.what();
  }
}

TEST(GpuTune, ThreadsMayDecomposeAtOnce) {
  if (cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const c10::Device gpu(c10::kCUDA, 0);
  tune(gpu, false);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const at::Tensor diagonal = at::arange(1, 9, at::device(gpu).dtype(at::kDouble));
        right += std::get<0>(at::linalg_eigh(diagonal.diag())).allclose(diagonal);
      });
    }
  }
  EXPECT_EQ(right, 8);
}

}  // namespace
}  // namespace abtrain::device
