// A world of NCCL's that fails: everybody ends, and the error says why.
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/nccl_ranks.h"
#include "error_of.h"
#include "stand_in/stand_in.h"

namespace abtrain::comm {
namespace {

class GpuNcclAbort : public GpuNcclRanks {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNcclAbort, ::testing::Values(1, 2, 4));

class GpuNcclFailures : public GpuNcclRanks {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNcclFailures, ::testing::Values(2, 4));

TEST_P(GpuNcclAbort, ReachesAllCommunicators) {
  std::atomic<int> told = 0;
  EXPECT_THROW(
      run_nccl(
          GetParam(), kNcclTimeout,
          [&](Communicator& comm, NcclWorld& world, Communicator& local) {
            const auto part = comm.split(0);
            EXPECT_NO_THROW(part->check_peers());
            local.barrier();
            world.abort(std::make_exception_ptr(Error(ErrorKind::Diverged, "loss is not finite")));
            const at::Tensor buffer = on_gpu(comm, at::ones({9}));
            for (Communicator* each : {&comm, part.get()}) {
              expect_error(
                  [&] { each->all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient); },
                  ErrorKind::PeerLost, {"loss is not finite"});
              ++told;
              EXPECT_THROW(each->check_peers(), Error);
              EXPECT_THROW(each->barrier(), Error);
            }
            comm.check_peers();
          }),
      Error);
  EXPECT_EQ(told, 2 * GetParam());
}

TEST_P(GpuNcclFailures, AnAbortFreesWhoeverWaitsForALostWorker) {
  // Rank 1 never comes; run_nccl tells the others when it leaves.
  EXPECT_THROW(
      run_nccl(
          GetParam(), 1e6,
          [](Communicator& comm, NcclWorld&, Communicator&) {
            comm.barrier();
            if (comm.rank() == 1) {
              throw Error(ErrorKind::Diverged, "loss is not finite");
            }
            comm.barrier();
            ADD_FAILURE() << "the barrier was passed";
          }),
      Error);
}

TEST_P(GpuNcclFailures, ATimeOutNamesTheCall) {
  std::atomic<int> told = 0;
  const int timeout = stand_in::is_here() ? 4 : 15;  // the start may take some of it
  EXPECT_THROW(
      run_nccl(
          GetParam(), timeout,
          [&](Communicator& comm, NcclWorld&, Communicator&) {
            comm.barrier();  // connected
            if (comm.rank() == 1) {
              while (told < GetParam() - 1) {  // all others
                comm.check_peers();
                std::this_thread::yield();
              }
              throw Error(ErrorKind::Diverged, "late");
            }
            const at::Tensor buffer = on_gpu(comm, at::ones({100001}));
            try {
              comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient).wait();
              device::synchronize(device_of(comm.rank()));
              comm.check_peers();
              ADD_FAILURE() << "nobody noticed";
            } catch (const Error& error) {
              EXPECT_EQ(error.kind(), ErrorKind::PeerLost);
              expect_has(error.what(), "all_reduce of 100001 Float");
              expect_has(error.what(), formatted("waited {} s", timeout));
              ++told;
              throw;
            }
          }),
      Error);
}

class GpuNcclErrors : public GpuNcclRanks {
 protected:
  void SetUp() override {
    GpuNcclRanks::SetUp();
    if (!stand_in::is_here()) {
      GTEST_SKIP() << "only the stand-in for NCCL fails when it is told to";
    }
  }
  // Runs the body and expects of the error that ends the world: its kind and text.
  static void expect(ErrorKind kind, const std::string& text, const Body& body) {
    expect_error([&] { run_nccl(GetParam(), 20, body); }, kind, {text});
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNcclErrors, ::testing::Values(2, 4));

TEST_P(GpuNcclErrors, ALostWorkerIsNoticedByWhoeverWatches) {
  expect(
      ErrorKind::PeerLost, "remote error of the stand-in",
      [](Communicator& comm, NcclWorld&, Communicator& local) {
        comm.barrier();
        if (comm.rank() == 0) {
          stand_in::fail("ncclCommGetAsyncError", 1);
        }
        local.barrier();
        const Stopwatch watch;
        while (watch.seconds() < 20) {
          comm.check_peers();
          std::this_thread::yield();
        }
      });
}

TEST_P(GpuNcclErrors, AFailedSplitEndsTheWorld) {
  expect(
      ErrorKind::PeerLost, formatted("split of {} workers", GetParam()),
      [](Communicator& comm, NcclWorld&, Communicator& local) {
        if (comm.rank() == 0) {
          stand_in::fail("ncclCommSplit", 1);
        }
        local.barrier();
        comm.split(0);
        comm.barrier();  // with whoever failed
      });
}

}  // namespace
}  // namespace abtrain::comm
