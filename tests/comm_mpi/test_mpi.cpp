// The MPI back end, run by mpiexec: every process runs these tests, side by
// side.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "comm/collectives.h"
#include "comm/launch.h"
#include "comm/meter.h"
#include "comm/mpi/library.h"
#include "comm/mpi/world.h"
#include "comm/nccl_ranks.h"
#include "error_of.h"

namespace abtrain::comm {
namespace {

// gtest makes the tests itself: what they share is here.
MpiWorld* world = nullptr;

TEST(Mpi, TheLaunchersOwnLibraryIsLoaded) {
  const std::string text = load_mpi(mpi_candidates()).text();
  EXPECT_TRUE(text.starts_with(env("ABTRAIN_TEST_MPI").value())) << text;
}

TEST(Mpi, AllReduceEqualsTheSumInRankOrder) {
  check_all_reduce(*world->communicator());
}

TEST(Mpi, AllGatherHoldsInputsInRankOrder) {
  check_all_gather(*world->communicator());
}

TEST(Mpi, AllGatherInPlace) {
  check_all_gather_in_place(*world->communicator());
}

TEST(Mpi, ReduceScatterGivesEachItsChunk) {
  check_reduce_scatter(*world->communicator());
}

TEST(Mpi, AllToAllGivesEachItsParts) {
  check_all_to_all(*world->communicator());
}

TEST(Mpi, BroadcastFromEveryRoot) {
  check_broadcast(*world->communicator());
}

TEST(Mpi, Dtypes) {
  check_dtypes(*world->communicator());
}

TEST(Mpi, ManyAtOnceWaitedForInAnyOrder) {
  check_many_at_once(*world->communicator());
}

TEST(Mpi, ADroppedPendingIsWaitedFor) {
  check_dropped_pending(*world->communicator());
}

TEST(Mpi, APendingOutlivesItsCommunicator) {
  check_pending_outlives_communicator(*world->communicator());
}

TEST(Mpi, SplitsAreOrderedByRank) {
  const auto comm = world->communicator();
  if (comm->size() < 3) {
    GTEST_SKIP() << "needs 3 processes";
  }
  check_split_order(*comm);
}

TEST(Mpi, NestedSplits) {
  const auto comm = world->communicator();
  if (comm->size() % 4 != 0) {
    GTEST_SKIP() << "needs 4 processes";
  }
  check_nested_splits(*comm);
}

// Many pieces per member, the ring of each used more than once, and members
// that are far behind.
TEST(Mpi, LargeBuffersThroughTheRing) {
  const auto comm = world->communicator();
  const std::int64_t numel = 3'000'017;
  for (int round = 0; round < 3; ++round) {
    const at::Tensor buffer = input_of(comm->rank(), numel, at::kFloat);
    const at::Tensor wanted = sum_of(comm->size(), numel, at::kFloat, ReduceOp::Mean);
    if (comm->rank() == round % comm->size()) {
      input_of(0, 4 * numel, at::kFloat);  // comes late
    }
    comm->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
    EXPECT_TRUE(buffer.equal(wanted));
  }
}

TEST(Mpi, BarriersInManyRounds) {
  const auto comm = world->communicator();
  for (int round = 0; round < 200; ++round) {
    comm->barrier();
  }
}

// More calls than a tag can tell apart.
TEST(Mpi, CallNumbersMayWrap) {
  const auto comm = world->communicator();
  const at::Tensor one = at::full({1}, 1, at::kLong);
  for (int round = 0; round < 4200; ++round) {
    one.fill_(1);
    comm->all_reduce(one, ReduceOp::Sum, Purpose::Metrics).wait();
    ASSERT_EQ(one.item<std::int64_t>(), comm->size()) << round;
  }
}

// More calls are open than a tag can tell apart, in two groups. Calls with the same tag are alike;
// the first of each 64 takes so many messages that a later one of its tag would mix with it.
TEST(Mpi, MoreAtOnceThanTagsTellApart) {
  const auto comm = world->communicator();
  const auto part = comm->split(0);
  std::vector<at::Tensor> buffers;
  std::vector<Pending> pending;
  for (int i = 0; i < 400; ++i) {
    const int number = i / 2 % 64;  // of the group's call, as its tag has it
    const std::int64_t elements = number == 0 ? 3'000'017 : 1 + number % 7;
    buffers.push_back(at::full({elements}, i + comm->rank(), at::kFloat));
    pending.push_back(
        (i % 2 == 0 ? part : comm)->all_reduce(buffers.back(), ReduceOp::Sum, Purpose::Gradient));
  }
  const int n = comm->size();
  for (int i = 399; i >= 0; --i) {
    const auto call = static_cast<std::size_t>(i);
    pending[call].wait();
    ASSERT_TRUE(buffers[call].eq(n * i + n * (n - 1) / 2).all().item<bool>()) << i;
  }
}

// A split waits for what its process has begun, and another process may still wait for that.
TEST(Mpi, ASplitComesAfterWhatIsOpen) {
  const auto comm = world->communicator();
  const at::Tensor buffer = at::full({3'000'017}, 1, at::kFloat);
  Pending pending = comm->all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
  if (comm->rank() == 0) {
    pending.wait();
  }
  EXPECT_EQ(comm->split(0)->size(), comm->size());
  if (comm->rank() != 0) {
    pending.wait();
  }
  EXPECT_TRUE(buffer.eq(comm->size()).all().item<bool>());
}

// Collectives begin once their buffers have arrived from the GPU, each in its turn, and results
// are there for what the worker queues next.
TEST(GpuMpi, BuffersOnAGpuAreStaged) {
  if (device::cuda_devices().empty()) {
    GTEST_SKIP() << "no CUDA device here";
  }
  const auto comm = world->communicator();
  const int n = comm->size();
  const device::OwnStream stream(device_of(comm->rank()));
  const auto filled = [&](std::int64_t numel, double value) {
    return on_gpu(*comm, at::full({numel}, value, at::kFloat));
  };
  for (int round = 0; round < 20; ++round) {
    const at::Tensor large = filled(300001, round + comm->rank());
    const at::Tensor small = filled(7, 10 * round + comm->rank());
    const at::Tensor parts = filled(3 * n, comm->rank());
    const at::Tensor part = filled(3, -1);
    Pending first = comm->all_reduce(large, ReduceOp::Sum, Purpose::Gradient);
    Pending second = comm->all_reduce(small, ReduceOp::Max, Purpose::Gradient);
    comm->reduce_scatter(part, parts, ReduceOp::Sum, Purpose::Sync).wait();
    second.wait();
    first.wait();
    const at::Tensor seen = large.clone();
    large.copy_(filled(300001, -1));
    EXPECT_TRUE(seen.cpu().eq(n * round + n * (n - 1) / 2).all().item<bool>()) << round;
    EXPECT_TRUE(small.cpu().eq(10 * round + n - 1).all().item<bool>()) << round;
    EXPECT_TRUE(part.cpu().eq(n * (n - 1) / 2).all().item<bool>()) << round;
  }
}

// The last test of a process: the world is of no use after it.
TEST(MpiFailure, DifferentCallsAreNamed) {
  const auto comm = world->communicator();
  if (comm->size() == 1) {
    GTEST_SKIP() << "needs 2 processes";
  }
  const std::int64_t numel = comm->rank() == 0 ? 7 : 8;
  expect_error(
      [&] { comm->all_reduce(at::zeros({numel}), ReduceOp::Sum, Purpose::Gradient).wait(); },
      ErrorKind::Config, {"different collectives", formatted("all_reduce of {}", numel)});
  EXPECT_THROW(comm->check_peers(), Error);
  EXPECT_THROW(comm->barrier(), Error);
}

TEST(MpiTimeout, TheMissingWorkerIsNamed) {
  const auto comm = world->communicator();
  if (comm->size() == 1) {
    GTEST_SKIP() << "needs 2 processes";
  }
  if (comm->rank() == comm->size() - 1) {
    std::this_thread::sleep_for(std::chrono::seconds(20));  // stays away
    return;
  }
  world->set_timeout(1.5);
  expect_error(
      [&] { comm->all_reduce(at::zeros({7}), ReduceOp::Sum, Purpose::Gradient).wait(); },
      ErrorKind::PeerLost, {formatted("for worker {}", comm->size() - 1)});
}

// MPI sends the buffer only once the other worker has answered, and never ends that request.
TEST(MpiLoss, ASendToALostWorkerEnds) {
  const auto comm = world->communicator();
  comm->barrier();
  if (comm->rank() == 1) {
    ::kill(::getpid(), SIGKILL);
  }
  expect_error(
      [&] { comm->broadcast(at::zeros({3'000'017}), 0, Purpose::Sync).wait(); },
      ErrorKind::PeerLost, {"a worker is lost"});
}

}  // namespace
}  // namespace abtrain::comm

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const abtrain::comm::Launch launch = abtrain::comm::find_launch();
  const auto mpi = abtrain::comm::MpiWorld::start(launch.rank, launch.size, 60);
  abtrain::comm::world = mpi.get();
  const int code = RUN_ALL_TESTS();
  if (code == 0 && ::testing::GTEST_FLAG(filter) == "Mpi.*") {
    return 0;  // MPI ends in order
  }
  // A world that has failed does not; mpirun is to see which code came first.
  std::fflush(nullptr);
  std::_Exit(code == 0 ? 42 : 1);
}
