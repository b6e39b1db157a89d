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
  Cgroups() {
    fs::create_directories(root_ / "a/b");
  }
  const TempFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(Cgroups, NoFilesMeanNoQuota) {
  EXPECT_EQ(cgroup_quota(root_, "a/b"), 0);
  EXPECT_EQ(cgroup_quota(root_ / "absent", ""), 0);
}

TEST_F(Cgroups, TheSmallestOnTheWayUpCounts) {
  folder_.add("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_quota(root_, "a/b"), 0);
  folder_.add("a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_quota(root_, "a/b"), 2.5);
  folder_.add("cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_quota(root_, "a/b"), 1.5);
}

TEST_F(Cgroups, VersionOneFiles) {
  folder_.add("a/cpu.cfs_quota_us", "-1\n");
  folder_.add("a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_quota(root_, "a"), 0);
  folder_.add("a/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(cgroup_quota(root_, "a"), 3);
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
