#include "device/graph.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/span.h"
#include "device/stream.h"

namespace abtrain::device {
namespace {

const c10::Device kCpu(c10::kCPU);
const c10::Device kGpu(c10::kCUDA, 0);

TEST(Graph, RunsItsBodyAtEachReplayOnly) {
  CaptureTurn turn;
  int runs = 0;
  Graph none;
  EXPECT_FALSE(none);
  Graph graph = Graph::capture(
      kCpu, [&] { ++runs; }, {}, turn);
  EXPECT_TRUE(graph);
  EXPECT_EQ(runs, 0);
  graph.replay();
  Graph moved = std::move(graph);
  EXPECT_FALSE(graph);
  moved.replay();
  EXPECT_EQ(runs, 2);
  moved = {};
  EXPECT_FALSE(moved);
}

TEST(CaptureTurn, IsTakenByOneAtATime) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 200;
  CaptureTurn turn;
  int inside = 0;  // not atomic: ThreadSanitizer would see two at once
  int times = 0;
  bool alone = true;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < kRounds; ++k) {
          const std::lock_guard lock(turn);
          alone &= ++inside == 1;
          ++times;
          std::this_thread::yield();
          --inside;
        }
      });
    }
  }
  EXPECT_TRUE(alone);
  EXPECT_EQ(times, kThreads * kRounds);
}

TEST(Span, OfTheCpuIsKnownAtOnce) {
  Span span(kCpu);
  const Stopwatch watch;
  while (watch.seconds() < 1e-3) {
  }
  span.end();
  const auto seconds = span.seconds(false);
  ASSERT_TRUE(seconds.has_value());
  EXPECT_GE(*seconds, 1e-3);
  const Span moved = std::move(span);
  EXPECT_EQ(moved.seconds(true), seconds);
}

class GpuGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) {
      GTEST_SKIP() << "no CUDA device here";
    }
    stream_.emplace(kGpu);
    options_ = at::TensorOptions(kGpu);
    generator_ = make_generator(kGpu);
  }
  // Zeros and twos.
  at::Tensor drawn(const at::Tensor& out) {
    return at::Tensor(out).bernoulli_(0.5, generator_).mul_(2);
  }

  std::optional<OwnStream> stream_;
  CaptureTurn turn_;
  at::TensorOptions options_;
  at::Generator generator_;
};

TEST_F(GpuGraph, ReplaysOnWhatItsTensorsHoldThen) {
  const at::Tensor x = at::ones({64, 64}, options_);
  const at::Tensor sum = at::zeros({}, options_);
  const auto body = [&] { at::Tensor(sum).add_(at::matmul(x, x).sum()); };
  body();
  Graph graph = Graph::capture(kGpu, body, {}, turn_);
  EXPECT_EQ(sum.item<float>(), 64.0F * 64 * 64);  // a capture does nothing
  for (int i = 0; i < 3; ++i) {
    graph.replay();
  }
  EXPECT_EQ(sum.item<float>(), 4 * 64.0F * 64 * 64);
  at::Tensor(x).fill_(2);
  graph.replay();
  EXPECT_EQ(sum.item<float>(), 8 * 64.0F * 64 * 64);
}

TEST_F(GpuGraph, DrawsAnewAndAsTheSeedSays) {
  const at::Tensor mask = at::zeros({4096}, options_);
  const auto body = [&] { drawn(mask); };
  generator_.set_current_seed(5);
  body();
  const at::Tensor eager = mask.clone();
  Graph graph = Graph::capture(kGpu, body, {generator_}, turn_);
  generator_.set_current_seed(5);
  graph.replay();
  EXPECT_TRUE(at::equal(mask, eager));
  graph.replay();
  EXPECT_FALSE(at::equal(mask, eager));
  generator_.set_current_seed(5);
  graph.replay();
  EXPECT_TRUE(at::equal(mask, eager));
  generator_.set_current_seed(6);
  graph.replay();
  EXPECT_FALSE(at::equal(mask, eager));
}

TEST_F(GpuGraph, AFailedCaptureLeavesTheDeviceUsable) {
  const at::Tensor x = at::randn({512, 512}, options_);
  const at::Tensor mask = at::zeros({4096}, options_);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THROW(
        Graph::capture(
            kGpu,
            [&] {
              drawn(mask);
              const at::Tensor y = at::matmul(x, x);
              EXPECT_NE(y.sum().item<float>(), 0);  // makes the host wait
            },
            {generator_}, turn_),
        CaptureFailed);
    EXPECT_THROW(
        Graph::capture(
            kGpu,
            [&] {
              drawn(mask);
              throw std::runtime_error("for another reason");
            },
            {generator_}, turn_),
        CaptureFailed);
  }
  generator_.set_current_seed(1);
  drawn(mask);
  EXPECT_GT(mask.sum().item<float>(), 0);
  Graph graph = Graph::capture(
      kGpu, [&] { drawn(mask); }, {generator_}, turn_);
  graph.replay();
  EXPECT_GT(at::matmul(x, x).abs().sum().item<float>(), 0);
}

TEST_F(GpuGraph, SpansEndWithTheWork) {
  Span span(kGpu);
  at::Tensor x = at::randn({2048, 2048}, options_);
  for (int i = 0; i < 20; ++i) {
    x = at::matmul(x, x);
  }
  span.end();
  const auto seconds = span.seconds(true);
  ASSERT_TRUE(seconds.has_value());
  EXPECT_GT(*seconds, 0);
  EXPECT_EQ(span.seconds(false), seconds);
}

}  // namespace
}  // namespace abtrain::device
