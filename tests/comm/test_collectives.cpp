// Collectives of the local back end.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/collectives.h"
#include "comm/run_workers.h"

namespace abtrain::comm {
namespace {

constexpr double kLocalTimeout = 20;

class Collectives : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, Collectives, ::testing::Values(1, 2, 3, 4, 8, 64));

TEST_P(Collectives, AllReduceEqualsTheSumInRankOrder) {
  run_workers(GetParam(), kLocalTimeout, check_all_reduce);
}

TEST_P(Collectives, AllGatherHoldsInputsInRankOrder) {
  run_workers(GetParam(), kLocalTimeout, check_all_gather);
}

TEST_P(Collectives, AllGatherInPlace) {
  run_workers(GetParam(), kLocalTimeout, check_all_gather_in_place);
}

TEST_P(Collectives, ReduceScatterGivesEachItsChunk) {
  run_workers(GetParam(), kLocalTimeout, check_reduce_scatter);
}

TEST_P(Collectives, AllToAllGivesEachItsParts) {
  run_workers(GetParam(), kLocalTimeout, check_all_to_all);
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  run_workers(GetParam(), kLocalTimeout, check_broadcast);
}

TEST_P(Collectives, NobodyPassesABarrierEarly) {
  const int n = GetParam();
  std::atomic<int> came = 0;
  run_workers(n, kLocalTimeout, [&](Communicator& comm) {
    for (int round = 1; round <= 5; ++round) {
      ++came;
      comm.barrier();
      EXPECT_GE(came.load(), n * round);
      comm.barrier();
    }
  });
}

TEST(CollectivesDtypes, AllReduce) {
  run_workers(16, kLocalTimeout, check_dtypes);
}

TEST(CollectivesAsync, ManyAtOnceWaitedForInAnyOrder) {
  run_workers(4, kLocalTimeout, check_many_at_once);
}

TEST(CollectivesAsync, ADroppedPendingIsWaitedFor) {
  run_workers(3, kLocalTimeout, check_dropped_pending);
}

TEST(CollectivesAsync, APendingOutlivesItsCommunicator) {
  run_workers(2, kLocalTimeout, check_pending_outlives_communicator);
}

TEST(Split, GroupsByColorOrderedByKeyThenRank) {
  run_workers(7, kLocalTimeout, check_split_order);
}

TEST(Split, NestedAndWorkingSideBySide) {
  run_workers(8, kLocalTimeout, check_nested_splits);
}

TEST(Stress, SixtyFourWorkersInManyRounds) {
  run_workers(64, kLocalTimeout, [&](Communicator& comm) {
    auto part = comm.split(comm.rank() % 8);
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
      run_workers(3, kLocalTimeout, [w](Communicator& comm) {
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
