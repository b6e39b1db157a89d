// Scalars of steps that the host reads: at once on the CPU, one step later on a
// GPU.
#include "train/readback.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <vector>

#include "device/devices.h"

namespace abtrain::train {
namespace {

at::Tensor scalar(double value, at::Device device, at::ScalarType type) {
  return at::full({}, value, at::TensorOptions(type).device(device));
}

TEST(Readback, OfTheCpuIsReadAtOnce) {
  Readback readback;
  EXPECT_FALSE(readback.flush());
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto reading = readback.exchange(7, scalar(-2.5, at::kCPU, type));
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->step, 7);
    EXPECT_EQ(reading->value, -2.5);
    EXPECT_FALSE(readback.flush());
  }
}

TEST(GpuReadback, IsOneStepLate) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  Readback readback;
  EXPECT_FALSE(readback.flush());
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    // Step 0 is one as any other.
    EXPECT_FALSE(readback.exchange(0, scalar(0.5, at::kCUDA, type)));
    for (int step = 1; step < 4; ++step) {
      const auto reading = readback.exchange(step, scalar(step + 0.5, at::kCUDA, type));
      ASSERT_TRUE(reading);
      EXPECT_EQ(reading->step, step - 1);
      EXPECT_EQ(reading->value, step - 0.5);
    }
    const auto last = readback.flush();
    ASSERT_TRUE(last);
    EXPECT_EQ(last->step, 3);
    EXPECT_EQ(last->value, 3.5);
    EXPECT_FALSE(readback.flush());
  }
}

}  // namespace
}  // namespace abtrain::train
