// Collectives of the local back end against sequential references.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/run_workers.h"
#include "comm/traffic.h"

namespace abtrain::comm {
namespace {

constexpr double kTimeout = 20;

at::Tensor input_of(int rank, std::int64_t numel, at::ScalarType type) {
  at::Generator generator = at::detail::createCPUGenerator(100 + rank);
  return at::isFloatingType(type)
             ? at::randn({numel}, generator, at::kDouble).to(type)
             : at::randint(0, 100, {numel}, generator, at::kLong).to(type);
}

// In rank order, in the wide type, rounded once.
at::Tensor sum_of(int n, std::int64_t numel, at::ScalarType type, ReduceOp op) {
  const auto wide = type == at::kDouble        ? at::kDouble
                    : at::isFloatingType(type) ? at::kFloat
                                               : at::kLong;
  at::Tensor sum = input_of(0, numel, type).to(wide);
  for (int i = 1; i < n; ++i) {
    const at::Tensor next = input_of(i, numel, type).to(wide);
    sum = op == ReduceOp::Max ? sum.maximum(next) : sum.add(next);
  }
  return (op == ReduceOp::Mean ? sum.div(static_cast<double>(n)) : sum)
      .to(type);
}

class Collectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(
    Workers,
    Collectives,
    ::testing::Values(1, 2, 3, 4, 8, 64));

// Both sides of the size below which one member works alone.
std::vector<std::int64_t> sizes_for(int workers) {
  return {0, 1, 5, 63, workers < 64 ? 70001 : 4097};
}

TEST_P(Collectives, AllReduceEqualsTheSumInRankOrder) {
  const int n = GetParam();
  for (const std::int64_t numel : sizes_for(n)) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
      const at::Tensor wanted = sum_of(n, numel, at::kFloat, op);
      run_workers(n, kTimeout, [&](Communicator& comm) {
        const at::Tensor buffer = input_of(comm.rank(), numel, at::kFloat);
        comm.all_reduce(buffer, op, Purpose::Gradient).wait();
        EXPECT_TRUE(buffer.equal(wanted)) << numel << " rank " << comm.rank();
      });
    }
  }
}

TEST_P(Collectives, AllGatherHoldsInputsInRankOrder) {
  const int n = GetParam();
  for (const std::int64_t base : {0, 3, 9000}) {
    std::vector<std::int64_t> counts;
    std::vector<at::Tensor> inputs;
    for (int i = 0; i < n; ++i) {
      counts.push_back(base + i % 3);  // zero among them
      inputs.push_back(input_of(i, counts.back(), at::kFloat));
    }
    const at::Tensor wanted = at::cat(inputs);
    run_workers(n, kTimeout, [&](Communicator& comm) {
      const at::Tensor out = at::full({wanted.numel()}, -1.0f);
      const at::Tensor in = inputs[comm.rank()].clone();
      comm.all_gather(out, in, counts, Purpose::Factors).wait();
      EXPECT_TRUE(out.equal(wanted));
    });
  }
}

TEST_P(Collectives, AllGatherInPlace) {
  const int n = GetParam();
  constexpr std::int64_t kEach = 9000;
  run_workers(n, kTimeout, [&](Communicator& comm) {
    const at::Tensor out = at::full({n * kEach}, -1, at::kLong);
    const at::Tensor in = out.narrow(0, comm.rank() * kEach, kEach);
    in.fill_(comm.rank());
    const std::vector<std::int64_t> counts(n, kEach);
    comm.all_gather(out, in, counts, Purpose::Factors).wait();
    EXPECT_TRUE(out.equal(at::arange(n, at::kLong).repeat_interleave(kEach)));
  });
}

TEST_P(Collectives, ReduceScatterGivesEachItsChunk) {
  const int n = GetParam();
  for (const std::int64_t numel : sizes_for(n)) {
    const at::Tensor wanted = sum_of(n, numel, at::kFloat, ReduceOp::Mean);
    run_workers(n, kTimeout, [&](Communicator& comm) {
      const auto begin = chunk_begin(numel, n, comm.rank());
      const auto count = chunk_size(numel, n, comm.rank());
      const at::Tensor in = input_of(comm.rank(), numel, at::kFloat);
      const at::Tensor before = in.clone();
      const at::Tensor out = at::empty({count});
      comm.reduce_scatter(out, in, ReduceOp::Mean, Purpose::Sync).wait();
      EXPECT_TRUE(out.equal(wanted.narrow(0, begin, count))) << numel;
      EXPECT_TRUE(in.equal(before));
      // Into its own input.
      const at::Tensor part = in.narrow(0, begin, count);
      comm.reduce_scatter(part, in, ReduceOp::Mean, Purpose::Sync).wait();
      EXPECT_TRUE(part.equal(out)) << numel;
    });
  }
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  const int n = GetParam();
  run_workers(n, kTimeout, [&](Communicator& comm) {
    for (int root = 0; root < n; root += std::max(1, n / 4)) {
      for (const std::int64_t numel : {0, 7, 70001}) {
        const at::Tensor buffer = at::full({numel}, comm.rank(), at::kInt);
        comm.broadcast(buffer, root, Purpose::Factors).wait();
        EXPECT_TRUE(buffer.equal(at::full({numel}, root, at::kInt)));
      }
    }
  });
}

TEST_P(Collectives, NobodyPassesABarrierEarly) {
  const int n = GetParam();
  std::atomic<int> came = 0;
  run_workers(n, kTimeout, [&](Communicator& comm) {
    for (int round = 1; round <= 5; ++round) {
      ++came;
      comm.barrier();
      EXPECT_GE(came.load(), n * round);
      comm.barrier();
    }
  });
}

TEST(CollectivesDtypes, AllReduce) {
  constexpr int kWorkers = 16;
  for (const auto type :
       {at::kFloat,
        at::kDouble,
        at::kHalf,
        at::kBFloat16,
        at::kInt,
        at::kLong,
        at::kByte}) {
    for (const std::int64_t numel : {37, 20001}) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean}) {
        if (op == ReduceOp::Mean && !at::isFloatingType(type)) {
          continue;
        }
        const at::Tensor wanted = sum_of(kWorkers, numel, type, op);
        run_workers(kWorkers, kTimeout, [&](Communicator& comm) {
          const at::Tensor buffer = input_of(comm.rank(), numel, type);
          comm.all_reduce(buffer, op, Purpose::Gradient).wait();
          EXPECT_TRUE(buffer.equal(wanted)) << c10::toString(type);
        });
      }
    }
  }
}

TEST(CollectivesAsync, ManyAtOnceWaitedForInAnyOrder) {
  constexpr int kCalls = 20;
  run_workers(4, kTimeout, [&](Communicator& comm) {
    std::vector<at::Tensor> buffers;
    std::vector<Pending> pending;
    for (int i = 0; i < kCalls; ++i) {
      // Small and large ones by turns.
      const std::int64_t numel = i % 2 == 0 ? 11 : 100001;
      buffers.push_back(at::full({numel}, i + comm.rank(), at::kFloat));
      pending.push_back(
          comm.all_reduce(buffers.back(), ReduceOp::Sum, Purpose::Gradient));
    }
    comm.barrier();  // a call without a Pending between them
    for (int i = 0; i < kCalls; ++i) {
      // Each rank in an order of its own.
      const int k = (i * 7 + comm.rank() * 3) % kCalls;
      pending[k].wait();
      pending[k].wait();  // once more does nothing
      EXPECT_TRUE(buffers[k].eq(4 * k + 6).all().item<bool>()) << k;
    }
  });
}

TEST(CollectivesAsync, ADroppedPendingIsWaitedFor) {
  run_workers(3, kTimeout, [&](Communicator& comm) {
    const at::Tensor buffer = at::full({100001}, 1.0f);
    {
      const Pending dropped =
          comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
    }
    EXPECT_TRUE(buffer.eq(3).all().item<bool>());
  });
}

TEST(CollectivesAsync, APendingOutlivesItsCommunicator) {
  run_workers(2, kTimeout, [&](Communicator& comm) {
    const at::Tensor buffer = at::full({100001}, 1.0f);
    auto part = comm.split(0, comm.rank());
    Pending pending =
        part->all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
    part.reset();
    pending.wait();
    EXPECT_TRUE(buffer.eq(2).all().item<bool>());
  });
}

TEST(Split, GroupsByColorOrderedByKeyThenRank) {
  run_workers(7, kTimeout, [&](Communicator& comm) {
    const int rank = comm.rank();
    auto part = comm.split(rank % 2, rank < 2 ? 1 : 0);
    // Even: 2 4 6, then 0. Odd: 3 5, then 1.
    const std::vector<int> even = {2, 4, 6, 0};
    const std::vector<int> odd = {3, 5, 1};
    const auto& order = rank % 2 == 0 ? even : odd;
    ASSERT_EQ(part->size(), static_cast<int>(order.size()));
    EXPECT_EQ(order[part->rank()], rank);
    const at::Tensor sum = at::full({1}, rank, at::kLong);
    part->all_reduce(sum, ReduceOp::Sum, Purpose::Sync).wait();
    EXPECT_EQ(sum.item<std::int64_t>(), rank % 2 == 0 ? 12 : 9);
  });
}

TEST(Split, NestedAndWorkingSideBySide) {
  run_workers(8, kTimeout, [&](Communicator& comm) {
    auto half = comm.split(comm.rank() / 4, comm.rank());
    auto pair = half->split(half->rank() / 2, half->rank());
    auto self = pair->split(pair->rank(), 0);
    EXPECT_EQ(self->size(), 1);
    for (int round = 0; round < 20; ++round) {
      const auto ones = [] { return at::full({50001}, 1.0f); };
      const at::Tensor a = ones();
      const at::Tensor b = ones();
      const at::Tensor c = ones();
      const at::Tensor d = ones();
      Pending of_world = comm.all_reduce(a, ReduceOp::Sum, Purpose::Gradient);
      Pending of_half = half->all_reduce(b, ReduceOp::Sum, Purpose::Gradient);
      Pending of_pair = pair->all_reduce(c, ReduceOp::Sum, Purpose::Gradient);
      self->all_reduce(d, ReduceOp::Sum, Purpose::Gradient).wait();
      of_pair.wait();
      of_half.wait();
      of_world.wait();
      EXPECT_EQ(a.sum().item<float>(), 8 * 50001);
      EXPECT_EQ(b.sum().item<float>(), 4 * 50001);
      EXPECT_EQ(c.sum().item<float>(), 2 * 50001);
      EXPECT_EQ(d.sum().item<float>(), 50001);
    }
  });
}

TEST(Stress, SixtyFourWorkersInManyRounds) {
  run_workers(64, kTimeout, [&](Communicator& comm) {
    auto part = comm.split(comm.rank() % 8, comm.rank());
    for (int round = 0; round < 30; ++round) {
      const std::int64_t numel = round % 3 == 0 ? 9001 : 17;
      const at::Tensor buffer = at::full({numel}, round, at::kFloat);
      part->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
      comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient).wait();
      ASSERT_TRUE(buffer.eq(64 * round).all().item<bool>()) << round;
    }
  });
}

TEST(Stress, EightWorldsAtOnce) {
  std::vector<std::jthread> owners;
  for (int w = 0; w < 8; ++w) {
    owners.emplace_back([w] {
      run_workers(3, kTimeout, [w](Communicator& comm) {
        for (int round = 0; round < 50; ++round) {
          const at::Tensor buffer = at::full({33333}, w, at::kFloat);
          comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient).wait();
          ASSERT_TRUE(buffer.eq(3 * w).all().item<bool>());
        }
      });
    });
  }
}

}  // namespace
}  // namespace abtrain::comm
