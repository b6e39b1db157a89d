// Workers that share one GPU: each on a stream of its own, ordered by events.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "comm/meter.h"
#include "comm/run_workers.h"
#include "device/devices.h"
#include "device/stream.h"

namespace abtrain::comm {
namespace {

class GpuLocal : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device::cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
  }
  void run(int workers, const std::function<void(Communicator&)>& body) {
    run_workers(workers, 60, [&](Communicator& comm) {
      const device::OwnStream stream(options_.device());
      body(comm);
    });
  }
  const at::TensorOptions options_ = at::device(at::Device(at::kCUDA, 0)).dtype(at::kFloat);
};

TEST_F(GpuLocal, CollectivesFollowTheStreams) {
  for (const std::int64_t numel : {1, 4097, 3000001}) {
    run(4, [&](Communicator& comm) {
      for (int round = 0; round < 20; ++round) {
        // Filled by work that may still be queued when the call is made.
        const at::Tensor buffer = at::full({numel}, round, options_);
        for (int i = 0; i < comm.rank(); ++i) {
          buffer.add_(1);
        }
        Pending pending = comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
        pending.wait();
        buffer.sub_(6);
        comm.broadcast(buffer, round % 4, Purpose::Factors).wait();
        EXPECT_TRUE(buffer.eq(4 * round).all().item<bool>()) << round;

        const at::Tensor in = at::full({2}, comm.rank(), options_);
        const at::Tensor out = at::empty({8}, options_);
        comm.all_gather(out, in, {2, 2, 2, 2}, Purpose::Factors).wait();
        const auto wanted = at::arange(4, at::kFloat).repeat_interleave(2);
        EXPECT_TRUE(out.cpu().equal(wanted));
      }
    });
  }
}

// The owner frees its buffer as soon as the call has returned, while the kernel
// that reads it may still be queued on another worker's stream.
TEST_F(GpuLocal, BuffersMayGoAtOnce) {
  constexpr std::int64_t kNumel = 4'000'000;
  run(4, [&](Communicator& comm) {
    const at::Tensor out = at::empty({4 * kNumel}, options_);
    for (int round = 0; round < 50; ++round) {
      const std::vector<std::int64_t> counts(4, kNumel);
      comm.all_gather(
              out, at::full({kNumel}, 10 * round + comm.rank(), options_), counts, Purpose::Factors)
          .wait();
      // Takes the memory that has just gone, and spoils it.
      at::full({kNumel}, -1, options_);
      for (int r = 0; r < 4; ++r) {
        EXPECT_TRUE(out.narrow(0, r * kNumel, kNumel).eq(10 * round + r).all().item<bool>())
            << round;
      }
    }
  });
}

TEST_F(GpuLocal, SecondsOfAMeterAreThoseOfTheStream) {
  run(2, [&](Communicator& base) {
    TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const double before = meter.seconds();
    const at::Tensor buffer = at::full({1 << 24}, 1, options_);
    for (int i = 0; i < 10; ++i) {
      world->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
    }
    meter.settle(true);
    EXPECT_GT(meter.of(Purpose::Gradient).seconds, 0);
    EXPECT_GT(meter.seconds(), before);
    EXPECT_EQ(meter.of(Purpose::Gradient).calls, 10);
  });
}

}  // namespace
}  // namespace abtrain::comm
