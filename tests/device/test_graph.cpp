#include "device/graph.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "device/devices.h"
#include "device/generator.h"
#include "device/span.h"
#include "device/stream.h"
#include "stand_in/stand_in.h"

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

// Their bodies only copy, so they also run on the stand-in for GPUs.
class GpuCapture : public GpuGraph {
 protected:
  void SetUp() override {
    GpuGraph::SetUp();
    if (IsSkipped()) {
      return;
    }
    from_ = at::ones({9}).to(kGpu);
    to_ = at::zeros({9}).to(kGpu);
  }
  static double first_of(const at::Tensor& tensor) {
    return tensor.cpu()[0].item<double>();
  }
  // Checks that copies work, by themselves and captured.
  void expect_usable(double value) {
    from_.copy_(at::full({9}, value));
    to_.copy_(from_);
    EXPECT_EQ(first_of(to_), value);
    Graph graph = Graph::capture(kGpu, copies(), {generator_}, turn_);
    from_.copy_(at::full({9}, value + 1));
    EXPECT_EQ(first_of(to_), value);  // a capture does nothing
    graph.replay();
    EXPECT_EQ(first_of(to_), value + 1);
  }
  std::function<void()> copies() {
    return [this] {
      const at::Tensor between = at::empty_like(to_);
      between.copy_(from_);
      to_.copy_(between);
    };
  }

  at::Tensor from_;
  at::Tensor to_;
};

TEST_F(GpuCapture, RecoversFromEveryError) {
  const auto waits = [this] {
    copies()();
    to_.cpu();
  };
  const auto throws = [this] {
    copies()();
    throw std::runtime_error("for another reason");
  };
  // With memory of its own, and with that of a graph which goes on working.
  Graph none;
  Graph earlier = Graph::capture(kGpu, copies(), {generator_}, turn_);
  const auto expect_failure = [&](const std::function<void()>& body, const char* call) {
    for (Graph* before : {&none, &earlier}) {
      if (call != nullptr) {
        stand_in::fail(call, 1);
      }
      EXPECT_THROW(Graph::capture(kGpu, body, {generator_}, turn_, *before), CaptureFailed);
      expect_usable(3);
      Graph later = Graph::capture(kGpu, copies(), {generator_}, turn_, earlier);
      for (Graph* each : {&earlier, &later, &earlier}) {
        to_.copy_(at::zeros({9}));
        from_.copy_(at::full({9}, 8.0));
        each->replay();
        EXPECT_EQ(first_of(to_), 8);
      }
    }
  };
  expect_failure(waits, nullptr);
  expect_failure(throws, nullptr);
  for (const char* call :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags"}) {
    if (stand_in::is_here()) {
      expect_failure(copies(), call);
    }
  }
}

// More than LibTorch's pool has streams.
TEST_F(GpuCapture, FortyWorkersCaptureWhileOthersReplay) {
  std::vector<std::jthread> workers;
  for (int i = 0; i < 40; ++i) {
    workers.emplace_back([this, i] {
      const OwnStream stream(kGpu);
      const at::Tensor from = at::full({1000}, i).to(kGpu);
      const at::Tensor to = at::zeros({1000}, at::kLong).to(kGpu);
      Graph graph = Graph::capture(
          kGpu, [&] { at::Tensor(to).copy_(from); }, {}, turn_);
      for (int k = 0; k < 5; ++k) {
        graph.replay();
        EXPECT_EQ(first_of(to), i + k);
        at::Tensor(from).copy_(at::full({1000}, i + k + 1));
      }
    });
  }
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
