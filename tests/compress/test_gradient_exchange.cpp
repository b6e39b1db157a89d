#include "compress/gradient_exchange.h"

#include <ATen/ops/full.h>

#include <cmath>

#include "comm/nccl_ranks.h"
#include "compress/invariants.h"

namespace abtrain::compress {
namespace {

using comm::Communicator;
using comm::Purpose;

constexpr std::int64_t kLayer = 150000;  // 0.57 MiB

// Four layers in small buckets: the first of two, then one each.
std::vector<Slot> four_layers() {
  std::vector<Slot> slots;
  for (int i = 0; i < 4; ++i) {
    slots.push_back({formatted("w{}", i), i * kLayer, {kLayer}, i});
  }
  return slots;
}

ReducerOptions small_buckets() {
  ReducerOptions options;
  options.bucket_mb = 0.5;
  return options;
}

TEST(GradientExchange, StartsABucketWhenItsSlotsAndThoseBeforeAreReady) {
  comm::run_workers(2, 20, [](Communicator& base) {
    comm::TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    const auto calls = [&] { return meter.of(Purpose::Gradient).calls; };
    const at::Tensor flat = at::zeros({4 * kLayer});
    GradientExchange exchange(small_buckets(), 1);
    exchange.bind(four_layers(), flat, *world);
    for (std::int64_t t = 0; t < 2; ++t) {
      for (int i = 0; i < 4; ++i) {
        flat.narrow(0, i * kLayer, kLayer).fill_(i + 10 * world->rank());
      }
      const auto before = calls();
      exchange.begin(t);
      exchange.ready(2);
      EXPECT_EQ(calls() - before, 0);  // 3 is sent first
      exchange.ready(3);
      EXPECT_EQ(calls() - before, 2);
      exchange.ready(0);
      EXPECT_EQ(calls() - before, 2);
      exchange.finish(t);  // 1 was never ready, and is sent all the same
      EXPECT_EQ(calls() - before, 4);
      for (int i = 0; i < 4; ++i) {
        EXPECT_TRUE(flat.narrow(0, i * kLayer, kLayer).eq(i + 5).all().item<bool>());
      }
    }
  });
}

TEST(GradientExchange, GivesTheSameBitsWithAndWithoutOverlap) {
  std::vector<at::Tensor> results(6);
  comm::run_workers(3, 20, [&](Communicator& world) {
    for (const bool overlaps : {true, false}) {
      ReducerOptions options = small_buckets();
      options.dtype = at::kBFloat16;
      const at::Tensor flat =
          at::randn({4 * kLayer}, at::detail::createCPUGenerator(7 + world.rank()), at::kFloat);
      GradientExchange exchange(options, 1);
      exchange.bind(four_layers(), flat, world);
      if (overlaps) {
        exchange.begin(0);
        for (const std::size_t slot : {3, 1, 0, 2}) {
          exchange.ready(slot);
        }
      }
      exchange.finish(0);
      results[world.rank() + (overlaps ? 3 : 0)] = flat;
    }
  });
  for (const at::Tensor& result : results) {
    EXPECT_TRUE(result.equal(results[0]));
  }
}

TEST(GradientExchange, StartedEarlyItEndsLater) {
  comm::run_workers(2, 20, [](Communicator& world) {
    const at::Tensor flat = at::full({4 * kLayer}, world.rank() * 2.0f);
    GradientExchange exchange(small_buckets(), 1);
    exchange.bind(four_layers(), flat, world, Purpose::Sync);
    exchange.start(4);
    exchange.finish(4);
    EXPECT_TRUE(flat.eq(1).all().item<bool>());
  });
}

// Each element once, as the worker has it.
TEST(GradientExchange, IsWatchedBeforeItSends) {
  comm::run_workers(2, 20, [](Communicator& world) {
    const at::Tensor flat = at::full({4 * kLayer}, world.rank() * 2.0f);
    const at::Tensor seen = at::zeros_like(flat);
    GradientExchange exchange(small_buckets(), 1);
    exchange.watch([&](const at::Tensor& gradients, std::int64_t begin, std::int64_t count) {
      seen.narrow(0, begin, count).add_(gradients.narrow(0, begin, count)).add_(1);
    });
    exchange.bind(four_layers(), flat, world);
    exchange.finish(0);
    EXPECT_TRUE(seen.eq(world.rank() * 2 + 1).all().item<bool>());
    EXPECT_TRUE(flat.eq(1).all().item<bool>());
  });
}

TEST(GradientExchange, EvaluatesTheEstimate) {
  comm::run_workers(2, 20, [](Communicator& base) {
    comm::TrafficMeter meter;
    auto world = metered(base.split(0), "world", meter);
    ReducerOptions options = small_buckets();
    options.dtype = at::kBFloat16;
    options.evaluate_every = 3;
    const at::Tensor flat = at::zeros({4 * kLayer});
    GradientExchange exchange(options, 1);
    exchange.bind(four_layers(), flat, *world);
    for (std::int64_t t = 0; t < 4; ++t) {
      flat.fill_(1.0f + 0.001f * static_cast<float>(world->rank()));
      const auto before = meter.of(Purpose::Gradient).bytes;
      exchange.begin(t);
      for (std::size_t slot = 0; slot < 4; ++slot) {
        exchange.ready(slot);
      }
      const auto evaluation = exchange.finish(t);
      ASSERT_EQ(evaluation.has_value(), t % 3 == 0) << t;
      if (!evaluation) {
        continue;
      }
      // 1.001 rounds to 1 in bf16; the mean is 1.0005.
      EXPECT_NEAR(evaluation->vnmse, 0.0005 * 0.0005 / 1.001, 1e-9);
      EXPECT_EQ(evaluation->residual_norm, 0);
      EXPECT_DOUBLE_EQ(evaluation->payload_bits, 16);
      EXPECT_DOUBLE_EQ(
          evaluation->sent_bits,
          8.0 * static_cast<double>(meter.of(Purpose::Gradient).bytes - before) / (4 * kLayer));
      for (const auto stage : {&Costs::encode, &Costs::collective, &Costs::decode}) {
        EXPECT_GT(evaluation->costs.*stage, 0);
        if (t > 0) {  // of this step alone
          EXPECT_LT(evaluation->costs.*stage, exchange.costs().*stage);
        }
      }
    }
  });
}

// The root of the mean over the workers of the sum of all squares.
TEST(GradientExchange, EvaluatesWhatCompressionLeavesOut) {
  comm::run_workers(2, 20, [](Communicator& world) {
    for (const bool feedback : {true, false}) {
      ReducerOptions options = small_buckets();
      options.name = "topk";
      options.error_feedback = feedback;
      options.evaluate_every = 1;
      const at::Tensor flat =
          at::randn({4 * kLayer}, at::detail::createCPUGenerator(7 + world.rank()), at::kFloat)
              .mul(1 + 3 * world.rank());
      GradientExchange exchange(options, 1);
      exchange.bind(four_layers(), flat, world);
      const auto evaluation = exchange.finish(0);
      ASSERT_TRUE(evaluation.has_value());
      const state::State state = state_of(exchange);
      EXPECT_EQ(state.own.size(), 4U);  // a residual of each bucket
      const at::Tensor squares = joined(state, "residual.").square().sum().view({1});
      world.all_reduce(squares, comm::ReduceOp::Mean, Purpose::Metrics).wait();
      const double norm = std::sqrt(squares.item<double>());
      EXPECT_GT(norm, 100);
      EXPECT_NEAR(evaluation->residual_norm, feedback ? norm : 0, 1e-4 * norm);
    }
  });
}

TEST(GradientExchange, EvaluatesAGradientOfZeros) {
  comm::run_workers(2, 20, [](Communicator& world) {
    ReducerOptions options = small_buckets();
    options.evaluate_every = 1;
    GradientExchange exchange(options, 1);
    const at::Tensor flat = at::zeros({4 * kLayer});
    exchange.bind(four_layers(), flat, world);
    EXPECT_EQ(exchange.finish(0)->vnmse, 0);
  });
}

TEST(GradientExchange, ServesNewBuffersAndNothing) {
  comm::run_workers(2, 20, [](Communicator& world) {
    GradientExchange exchange(small_buckets(), 1);
    const at::Tensor first = at::full({4 * kLayer}, world.rank() * 2.0f);
    exchange.bind(four_layers(), first, world);
    exchange.finish(0);
    exchange.release();
    const at::Tensor second = at::full({3}, world.rank() * 4.0f);
    exchange.bind({{"w", 0, {3}}}, second, world);
    exchange.finish(1);
    EXPECT_TRUE(first.eq(1).all().item<bool>());
    EXPECT_TRUE(second.eq(2).all().item<bool>());
    exchange.bind({}, at::zeros({0}), world);
    exchange.begin(2);
    exchange.finish(2);
  });
}

// NCCL's collectives run on a stream of their own, behind what each worker has queued so far, and
// the next step overwrites the gradients as soon as they are averaged.
using GpuNcclExchange = comm::GpuNcclRanks;
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNcclExchange, ::testing::Values(2, 4));
TEST_P(GpuNcclExchange, FollowsTheStreams) {
  comm::run_nccl(GetParam(), 60, [](Communicator& nccl, comm::NcclWorld&, Communicator&) {
    const int n = nccl.size();
    const auto value = [](std::int64_t t, int layer, int rank) {
      return static_cast<double>(100 * t + 10 * layer + rank);
    };
    const at::Tensor flat = on_gpu(nccl, at::zeros({4 * kLayer}));
    ReducerOptions options = small_buckets();
    options.dtype = at::kFloat;
    GradientExchange exchange(options, 1);
    exchange.bind(four_layers(), flat, nccl);
    for (std::int64_t t = 0; t < 10; ++t) {
      exchange.begin(t);
      for (int i = 3; i >= 0; --i) {
        const at::Tensor gradient = at::full({kLayer}, value(t, i, nccl.rank()), at::kFloat);
        flat.narrow(0, i * kLayer, kLayer).copy_(on_gpu(nccl, gradient));
        exchange.ready(static_cast<std::size_t>(i));
      }
      exchange.finish(t);
      const at::Tensor averaged = flat.clone();
      flat.copy_(on_gpu(nccl, at::full({4 * kLayer}, -1.0)));
      const at::Tensor seen = averaged.cpu();
      for (int i = 0; i < 4; ++i) {
        const double mean = value(t, i, 0) + (n - 1) / 2.0;
        EXPECT_TRUE(seen.narrow(0, i * kLayer, kLayer).eq(mean).all().item<bool>())
            << t << " " << i;
      }
    }
  });
}

}  // namespace
}  // namespace abtrain::compress
