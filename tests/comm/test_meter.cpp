#include "comm/meter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/run_workers.h"
#include "comm/traffic.h"

namespace abtrain::comm {
namespace {

TEST(Traffic, ChunksCoverThePayload) {
  for (const std::int64_t numel : {0, 1, 5, 64, 1000003}) {
    for (const int n : {1, 2, 3, 8, 64}) {
      std::int64_t next = 0;
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(chunk_begin(numel, n, i), next);
        EXPECT_LE(chunk_size(numel, n, i), numel / n + 1);
        EXPECT_GE(chunk_size(numel, n, i), numel / n);
        next += chunk_size(numel, n, i);
      }
      EXPECT_EQ(next, numel);
    }
  }
  // Beyond 63 bits in the product.
  EXPECT_EQ(chunk_begin(std::int64_t{1} << 62, 64, 32), std::int64_t{1} << 61);
}

TEST(Traffic, SumsAreTheKnownTotals) {
  for (const std::int64_t numel : {0, 1, 5, 1000003}) {
    for (const int n : {1, 2, 3, 8, 64}) {
      std::int64_t reduced = 0;
      std::int64_t scattered = 0;
      std::int64_t broadcast = 0;
      for (int i = 0; i < n; ++i) {
        reduced += all_reduce_bytes(numel, 4, n, i);
        scattered += reduce_scatter_bytes(numel, 2, n, i);
        broadcast += broadcast_bytes(numel, 4, n, i, n / 2);
      }
      EXPECT_EQ(reduced, 2 * (n - 1) * numel * 4);
      EXPECT_EQ(scattered, (n - 1) * numel * 2);
      EXPECT_EQ(broadcast, (n - 1) * numel * 4);
    }
  }
  EXPECT_EQ(all_gather_bytes(10, 4, 5), 160);
  // By hand: 5 elements over 2: chunks of 2 and 3.
  EXPECT_EQ(all_reduce_bytes(5, 4, 2, 0), (3 + 2) * 4);
  EXPECT_EQ(all_reduce_bytes(5, 4, 3, 1), (3 + 2 * 2) * 4);
}

TEST(Meter, CountsEveryCallByScopeAndPurpose) {
  constexpr int kWorkers = 4;
  constexpr std::int64_t kNumel = 1003;
  run_workers(kWorkers, 20, [&](Communicator& base) {
    TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const int rank = world->rank();
    EXPECT_EQ(world->size(), kWorkers);
    auto group = world->split(rank / 2);
    EXPECT_EQ(meter.training_bytes(), 0);

    const auto buffer = at::zeros({kNumel}, at::kHalf);
    for (int i = 0; i < 3; ++i) {
      group->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
    }
    EXPECT_EQ(
        meter.of("group", Purpose::Gradient).bytes,
        3 * all_reduce_bytes(kNumel, 2, 2, group->rank()));
    EXPECT_EQ(meter.of("group", Purpose::Gradient).calls, 3);
    EXPECT_EQ(meter.of("world", Purpose::Gradient).calls, 0);

    const std::vector<std::int64_t> counts = {1, 2, 3, 4};
    const auto in = at::zeros({counts[rank]}, at::kLong);
    world->all_gather(at::zeros({10}, at::kLong), in, counts, Purpose::Factors).wait();
    world->broadcast(at::zeros({9}, at::kByte), 2, Purpose::Factors).wait();
    EXPECT_EQ(meter.of(Purpose::Factors).bytes, counts[rank] * 8 * 3 + (rank == 2 ? 27 : 0));

    const auto share = chunk_size(kNumel, kWorkers, rank);
    world->reduce_scatter(at::zeros({share}), at::zeros({kNumel}), ReduceOp::Sum, Purpose::Sync)
        .wait();
    EXPECT_EQ(meter.of("world", Purpose::Sync).bytes, (kNumel - share) * 4);

    const auto to_each = world->split(0);
    to_each
        ->all_to_all(
            at::zeros({kWorkers * counts[rank]}, at::kInt), at::zeros({10}, at::kInt), counts,
            Purpose::Gradient)
        .wait();
    EXPECT_EQ(
        meter.of("group", Purpose::Gradient).bytes,
        3 * all_reduce_bytes(kNumel, 2, 2, group->rank()) + (10 - counts[rank]) * 4);

    const auto before = meter.training_bytes();
    EXPECT_EQ(
        before, meter.of(Purpose::Gradient).bytes + meter.of(Purpose::Factors).bytes +
                    meter.of(Purpose::Sync).bytes);
    world->all_reduce(at::zeros({8}), ReduceOp::Sum, Purpose::Metrics).wait();
    EXPECT_EQ(meter.training_bytes(), before);
    EXPECT_EQ(meter.of(Purpose::Metrics).bytes, all_reduce_bytes(8, 4, kWorkers, rank));
    world->barrier();
    EXPECT_NO_THROW(world->check_peers());

    TrafficMeter later;
    later.count_seconds(5);  // of a barrier: gone with all else
    later.restore(meter.scopes());
    EXPECT_EQ(later.other_seconds(), 0);
    EXPECT_EQ(later.training_bytes(), before);
  });
}

TEST(Meter, AGroupOfOneSendsNothing) {
  run_workers(1, 20, [](Communicator& base) {
    TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const auto buffer = at::zeros({100});
    world->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
    world->broadcast(buffer, 0, Purpose::Factors).wait();
    EXPECT_EQ(meter.training_bytes(), 0);
    EXPECT_EQ(meter.of(Purpose::Gradient).calls, 1);
  });
}

// Of a group of two: every call takes a while, and so does waiting for it.
class Slow : public Communicator {
 public:
  // `spent`: the seconds of the latest call or wait.
  explicit Slow(double& spent) : Communicator(0, 2), spent_(spent) {}
  std::unique_ptr<Communicator> split(int) override {
    spend(spent_);
    return std::make_unique<Slow>(spent_);
  }
  void barrier() override {
    spend(spent_);
  }
  void check_peers() override {}

  Pending start(Call) override {
    spend(spent_);
    return Pending([&spent = spent_] { spend(spent); }, nullptr);
  }

 private:
  static void spend(double& seconds) {
    const Stopwatch watch;
    do {
      seconds = watch.seconds();
    } while (seconds < 1e-3);
  }

  double& spent_;
};

// What is counted lies between two measurements: one around the metered call
// and one within it.
TEST(Meter, CountsTheTimeOfCallsAndOfWaiting) {
  double spent = 0;
  TrafficMeter meter;
  auto comm = metered(std::make_unique<Slow>(spent), "world", meter);
  const auto expect_counted = [&](const auto& call, const auto& counted) {
    const double others = meter.seconds() - counted();
    const double before = counted();
    const Stopwatch around;
    call();
    const double most = around.seconds();
    constexpr double kRounding = 1e-9;
    EXPECT_GE(counted() - before, spent - kRounding);
    EXPECT_LE(counted() - before, most + kRounding);
    EXPECT_NEAR(meter.seconds() - counted(), others, kRounding);
  };
  const at::Tensor two = at::zeros({2});
  const at::Tensor four = at::zeros({4});
  const std::vector<std::int64_t> counts = {2, 2};
  using Start = std::function<Pending(Communicator&)>;
  const std::vector<std::pair<Purpose, Start>> calls = {
      {Purpose::Gradient,
       [&](Communicator& c) { return c.all_reduce(two, ReduceOp::Mean, Purpose::Gradient); }},
      {Purpose::Factors,
       [&](Communicator& c) { return c.all_gather(four, two, counts, Purpose::Factors); }},
      {Purpose::Sync,
       [&](Communicator& c) { return c.reduce_scatter(two, four, ReduceOp::Sum, Purpose::Sync); }},
      {Purpose::Orders,
       [&](Communicator& c) {
         return c.all_to_all(at::zeros({4}), four, counts, Purpose::Orders);
       }},
      {Purpose::Metrics, [&](Communicator& c) { return c.broadcast(two, 0, Purpose::Metrics); }}};
  for (const auto& [purpose, start] : calls) {
    const auto counted = [&meter, p = purpose] { return meter.of("world", p).seconds; };
    Pending pending;
    expect_counted([&, &begin = start] { pending = begin(*comm); }, counted);
    expect_counted([&] { pending.wait(); }, counted);
  }
  const auto other = [&] { return meter.other_seconds(); };
  expect_counted([&] { comm->barrier(); }, other);
  expect_counted([&] { comm->split(0); }, other);
}

// On a GPU a span's seconds come later.
TEST(Meter, AddsSpansOnceTheyAreKnown) {
  TrafficMeter meter;
  device::Span span(at::kCPU);
  span.end();
  const double seconds = *span.seconds(false);
  meter.count_span("group", Purpose::Gradient, std::move(span));
  EXPECT_EQ(meter.seconds(), 0);
  meter.settle(false);
  EXPECT_EQ(meter.of("group", Purpose::Gradient).seconds, seconds);
  meter.settle(true);
  EXPECT_EQ(meter.seconds(), seconds);
}

TEST(Meter, WhatIsRefusedIsNotCounted) {
  run_workers(1, 20, [](Communicator& base) {
    TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    EXPECT_THROW(world->all_reduce(at::zeros({2, 2}), ReduceOp::Sum, Purpose::Gradient), Error);
    EXPECT_EQ(meter.of(Purpose::Gradient).calls, 0);
  });
}

// Checkpoints store traffic by these numbers.
TEST(Purposes, KeepTheirNumbers) {
  const std::vector<Purpose> purposes = {
      Purpose::Gradient, Purpose::Sync, Purpose::Factors, Purpose::Orders, Purpose::Metrics};
  ASSERT_EQ(purposes.size(), static_cast<std::size_t>(kPurposes));
  for (int p = 0; p < kPurposes; ++p) {
    EXPECT_EQ(purposes[static_cast<std::size_t>(p)], static_cast<Purpose>(p));
  }
}

}  // namespace
}  // namespace abtrain::comm
