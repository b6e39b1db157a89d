// A world of NCCL's that fails: everybody ends, and the error says why.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "comm/nccl_ranks.h"

namespace abtrain::comm {
namespace {

class GpuNcclFailures : public GpuNcclRanks {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNcclFailures, ::testing::Values(1, 2, 4));

TEST_P(GpuNcclFailures, AnAbortReachesAllCommunicators) {
  std::atomic<int> told = 0;
  EXPECT_THROW(
      run_nccl(
          GetParam(), kNcclTimeout,
          [&](Communicator& comm, NcclWorld& world, Communicator& local) {
            const auto part = comm.split(0);
            EXPECT_NO_THROW(part->check_peers());
            local.barrier();
            world.abort(std::make_exception_ptr(Error(ErrorKind::Diverged, "loss is not finite")));
            const at::Tensor buffer = at::full({9}, 1.0, floats_of(comm));
            for (Communicator* each : {&comm, part.get()}) {
              try {
                each->all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
                ADD_FAILURE() << "the call returned";
              } catch (const Error& error) {
                EXPECT_EQ(error.kind(), ErrorKind::PeerLost);
                EXPECT_NE(std::string(error.what()).find("loss is not finite"), std::string::npos);
                ++told;
              }
              EXPECT_THROW(each->check_peers(), Error);
              EXPECT_THROW(each->barrier(), Error);
            }
            comm.check_peers();
          }),
      Error);
  EXPECT_EQ(told, 2 * GetParam());
}

TEST_P(GpuNcclFailures, AnAbortFreesWhoeverWaitsForALostWorker) {
  if (GetParam() == 1) {
    GTEST_SKIP() << "needs a worker to wait for";
  }
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
  if (GetParam() == 1) {
    GTEST_SKIP() << "needs a worker to wait for";
  }
  std::atomic<int> told = 0;
  EXPECT_THROW(
      run_nccl(
          GetParam(),
          15,  // the start may take some of it
          [&](Communicator& comm, NcclWorld&, Communicator&) {
            comm.barrier();  // connected
            if (comm.rank() == 1) {
              while (told == 0) {
                comm.check_peers();
                std::this_thread::yield();
              }
              throw Error(ErrorKind::Diverged, "late");
            }
            const at::Tensor buffer = at::full({100001}, 1.0, floats_of(comm));
            try {
              comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient).wait();
              device::synchronize(device_of(comm.rank()));
              comm.check_peers();
              ADD_FAILURE() << "nobody noticed";
            } catch (const Error& error) {
              EXPECT_EQ(error.kind(), ErrorKind::PeerLost);
              const std::string text = error.what();
              EXPECT_NE(text.find("all_reduce of 100001 Float"), text.npos) << text;
              EXPECT_NE(text.find("waited 15 s"), text.npos) << text;
              ++told;
              throw;
            }
          }),
      Error);
}

}  // namespace
}  // namespace abtrain::comm
