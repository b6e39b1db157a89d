#include "data/device_loader.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>

#include <atomic>
#include <thread>
#include <vector>

#include "data/data_files.h"
#include "data/failing_order.h"
#include "data/loader.h"
#include "device/devices.h"
#include "device/stream.h"
#include "error_of.h"

namespace abtrain::data {
namespace {

class DeviceLoaderTest : public ::testing::Test {
 protected:
  DeviceLoaderTest() {
    prepare(3, 6, 7);
  }
  // 23 images for two workers: 11 examples per epoch.
  void prepare(std::int64_t channels, std::int64_t height, std::int64_t width) {
    set_ = random_set(23, channels, height, width);
    augment_ = std::make_unique<Augment>(
        DataOptions{.augment = AugmentName::CropFlip, .pad = 2, .erase = 0.5}, set_, 4);
    order_ = make_shuffle({23, 1, 2, 4});
    copies_ = std::make_unique<DeviceCopies>(set_, none_);
  }
  // `steps` batches of both loaders from `first` on.
  void expect_as_loader(
      c10::Device device, std::int64_t batch_size, std::int64_t first, int steps,
      at::ScalarType type = at::kFloat) {
    Loader host(set_.train, *augment_, *order_, batch_size, 2, first);
    DeviceLoader loader(copies_->on(device).train, *augment_, *order_, batch_size, first, type);
    for (int i = 0; i < steps; ++i) {
      const Batch wanted = next_of(host);
      const Batch got = next_of(loader);
      EXPECT_EQ(got.inputs.device(), device);
      ASSERT_TRUE(at::equal(got.inputs.cpu(), wanted.inputs.to(type)))
          << "batch " << i << " from " << first << " by " << batch_size;
      ASSERT_EQ(got.inputs.strides(), wanted.inputs.strides());
      ASSERT_TRUE(at::equal(got.labels.cpu(), wanted.labels));
    }
  }
  void expect_as_loader(c10::Device device) {
    for (const std::int64_t batch_size : {1, 4, 11}) {
      for (const std::int64_t first : {0, 1, 2, 5, 9}) {
        expect_as_loader(device, batch_size, first, 25);
      }
    }
    expect_as_loader(device, 4, 1, 5, at::kBFloat16);
    for (const auto& [channels, height, width] :
         {std::tuple(1, 9, 5), std::tuple(4, 1, 3), std::tuple(3, 32, 32)}) {
      prepare(channels, height, width);
      expect_as_loader(device, 3, 0, 8);
      expect_as_loader(device, 3, 0, 8, at::kBFloat16);
    }
  }
  // What an evaluation takes from a device.
  void expect_evaluation_of_host(c10::Device device, std::int64_t begin, std::int64_t end) {
    const Batch wanted = augment_->evaluation(set_.train, begin, end);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const Batch got = augment_->evaluation(copies_->on(device).train, begin, end, type);
      EXPECT_TRUE(at::equal(got.inputs.cpu(), wanted.inputs.to(type)));
      EXPECT_TRUE(at::equal(got.labels.cpu(), wanted.labels));
    }
  }

  Dataset set_;
  Examples none_;
  std::unique_ptr<Augment> augment_;
  std::unique_ptr<ExampleOrder> order_;
  std::unique_ptr<DeviceCopies> copies_;
};

TEST_F(DeviceLoaderTest, SameBatchesAsTheHostsLoader) {
  expect_as_loader(c10::kCPU);
}

TEST_F(DeviceLoaderTest, WritesIntoTheTensorsOfTheBatch) {
  DeviceLoader loader(copies_->on(c10::kCPU).train, *augment_, *order_, 4);
  Batch batch = next_of(loader);
  const Batch first = {batch.inputs.clone(), batch.labels.clone()};
  const void* images = batch.inputs.data_ptr();
  const void* labels = batch.labels.data_ptr();
  DeviceLoader again(copies_->on(c10::kCPU).train, *augment_, *order_, 4);
  loader.next(batch);
  EXPECT_FALSE(at::equal(batch.inputs, first.inputs));
  again.next(batch);
  EXPECT_EQ(batch.inputs.data_ptr(), images);
  EXPECT_EQ(batch.labels.data_ptr(), labels);
  EXPECT_TRUE(at::equal(batch.inputs, first.inputs));
  EXPECT_TRUE(at::equal(batch.labels, first.labels));
  // Other sizes or another type are a bug of the caller.
  Batch small{batch.inputs.narrow(0, 0, 3), batch.labels.narrow(0, 0, 3)};
  EXPECT_THROW(loader.next(small), std::logic_error);
  Batch other{batch.inputs.to(at::kBFloat16), batch.labels};
  EXPECT_THROW(loader.next(other), std::logic_error);
}

TEST_F(DeviceLoaderTest, ThrowsWhatItsThreadThrewAfterTheGoodBatches) {
  const FailingOrder order(6, 2);
  DeviceLoader loader(copies_->on(c10::kCPU).train, *augment_, order, 2);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(next_of(loader).labels.size(0), 2);
  }
  for (int i = 0; i < 2; ++i) {
    expect_error([&] { next_of(loader); }, ErrorKind::DamagedData, {"the order is broken"});
  }
}

// A GPU would read whatever lies there.
TEST_F(DeviceLoaderTest, AnExampleOutOfRangeIsABug) {
  for (const std::int64_t example : {-1, 23}) {
    const FailingOrder order(6, -1, example);
    DeviceLoader loader(copies_->on(c10::kCPU).train, *augment_, order, 2);
    try {
      next_of(loader);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::logic_error& error) {
      EXPECT_NE(
          std::string(error.what()).find("the order of epoch 0 has example"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(DeviceLoaderTest, MakesOneOrderAhead) {
  const FailingOrder order(6, -1);
  DeviceLoader loader(copies_->on(c10::kCPU).train, *augment_, order, 6);
  for (int taken = 0; taken < 4; ++taken) {
    // Besides the one that waits, one is in the thread's hands.
    EXPECT_LE(order.calls, taken + 2);
    next_of(loader);
  }
  EXPECT_GE(loader.waited(), 0);
}

TEST_F(DeviceLoaderTest, EndsWhileItsThreadWaitsAndAfterItFailed) {
  for (int i = 0; i < 200; ++i) {
    const FailingOrder order(6, i % 3 == 0 ? 0 : -1);
    DeviceLoader loader(copies_->on(c10::kCPU).train, *augment_, order, 2);
    if (i % 3 == 1) {
      EXPECT_EQ(next_of(loader).labels.size(0), 2);
    }
  }
}

TEST_F(DeviceLoaderTest, RefusesASizeThatGivesNoBatch) {
  expect_error(
      [&] { DeviceLoader(copies_->on(c10::kCPU).train, *augment_, *order_, 12); },
      ErrorKind::Config, {"data.batch_size", "got 12"});
}

TEST_F(DeviceLoaderTest, WorkersShareOneCopy) {
  set_.test = random_images(5, 3, 6, 7);
  std::vector<const DeviceDataset*> seen(8);
  {
    std::vector<std::jthread> workers;
    for (const DeviceDataset*& each : seen) {
      workers.emplace_back([&] { each = &copies_->on(c10::kCPU); });
    }
  }
  for (const DeviceDataset* each : seen) {
    EXPECT_EQ(each, seen.front());
  }
  EXPECT_EQ(seen.front()->train.size(), 23);
  EXPECT_EQ(seen.front()->validation.size(), 0);
  EXPECT_EQ(seen.front()->test.size(), 5);
  // 28 images of 126 bytes with their labels.
  EXPECT_EQ(device_bytes(set_, none_), 28 * (126 + 8));
}

TEST_F(DeviceLoaderTest, EvaluationIsTheHosts) {
  expect_evaluation_of_host(c10::kCPU, 0, 23);
  expect_evaluation_of_host(c10::kCPU, 5, 5);
}

class GpuDeviceLoader : public DeviceLoaderTest {
 protected:
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  const c10::Device gpu_{c10::kCUDA, 0};
};

TEST_F(GpuDeviceLoader, SameBatchesAsTheHostsLoader) {
  expect_as_loader(gpu_);
}

TEST_F(GpuDeviceLoader, EvaluationIsTheHosts) {
  expect_evaluation_of_host(gpu_, 2, 21);
}

// The host's loader copies batches ahead, on a stream of its own, into new tensors or those of a
// captured step. Also run on the stand-in for GPUs.
using GpuFedByHost = GpuDeviceLoader;
TEST_F(GpuFedByHost, GetsTheSameBatches) {
  const device::OwnStream stream(gpu_);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Loader host(set_.train, *augment_, *order_, 4, 2);
    Loader fed(set_.train, *augment_, *order_, 4, 2, 0, gpu_, type);
    Batch fixed;
    for (int i = 0; i < 20; ++i) {
      const Batch wanted = next_of(host);
      Batch fresh;
      Batch& got = i % 2 == 0 ? fixed : fresh;
      fed.next(got);
      EXPECT_EQ(got.inputs.device(), gpu_);
      EXPECT_TRUE(at::equal(got.inputs.cpu(), wanted.inputs.to(type))) << i;
      EXPECT_TRUE(at::equal(got.labels.cpu(), wanted.labels)) << i;
    }
  }
}

}  // namespace
}  // namespace abtrain::data
