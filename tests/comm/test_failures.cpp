// Workers that fail, stay away or call something else: everybody ends, and the
// error says why.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/failure.h"
#include "comm/local/world.h"
#include "comm/run_workers.h"
#include "control_workers.h"
#include "error_of.h"

namespace abtrain::comm {
namespace {

// So long that a test which had to wait for it would be stopped first.
constexpr double kForever = 1e6;

// Runs workers of which one diverges: its error comes on the calling thread.
void expect_divergence(int workers, const std::function<void(Communicator&)>& body) {
  expect_error([&] { run_workers(workers, kForever, body); }, ErrorKind::Diverged);
}

at::Tensor large() {
  return at::full({100001}, 1.0f);
}

// Calls again and again until that throws Error(PeerLost), which is counted and goes on.
void call_until_told(std::atomic<int>& told, const std::function<void()>& call) {
  try {
    while (true) {
      call();
    }
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::PeerLost);
    expect_has(error.what(), "loss is not finite");
    ++told;
    throw;
  }
}

[[noreturn]] void diverge() {
  throw Error(ErrorKind::Diverged, "loss is not finite");
}

class Abort : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, Abort, ::testing::Values(2, 4, 64));

TEST_P(Abort, TheRootCauseIsThrownAndNobodyHangs) {
  std::atomic<int> told = 0;
  expect_divergence(GetParam(), [&](Communicator& comm) {
    const at::Tensor buffer = large();
    const auto reduce = [&] { comm.all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait(); };
    if (comm.rank() == 1) {
      for (int step = 0; step < 3; ++step) {
        reduce();
      }
      diverge();
    }
    call_until_told(told, reduce);
  });
  EXPECT_EQ(told, GetParam() - 1);
}

TEST(AbortElsewhere, ReachesOtherGroupsAndNestedOnes) {
  std::atomic<int> told = 0;
  expect_divergence(8, [&](Communicator& comm) {
    auto half = comm.split(comm.rank() / 4);
    auto pair = half->split(half->rank() / 2);
    comm.barrier();
    if (comm.rank() == 7) {
      diverge();
    }
    const at::Tensor buffer = large();
    // Rank 7 is missing from some of these only; the others go round until
    // they are told.
    Communicator& part = comm.rank() < 4 ? *pair : *half;
    call_until_told(
        told, [&] { part.all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait(); });
  });
  EXPECT_EQ(told, 7);
}

TEST(AbortElsewhere, CheckPeersTellsWithoutACollective) {
  std::atomic<int> told = 0;
  expect_divergence(2, [&](Communicator& comm) {
    auto alone = comm.split(comm.rank());
    alone->check_peers();
    if (comm.rank() == 0) {
      diverge();
    }
    call_until_told(told, [&] {
      alone->check_peers();
      std::this_thread::yield();
    });
  });
  EXPECT_LE(told, 1);  // 0: the first call has told it already
}

TEST(AbortElsewhere, AnErrorDoesNotWaitForWhatIsUnderWay) {
  // Rank 0 leaves with a call under way that rank 1, waiting for rank 0 in
  // another communicator, never makes.
  expect_divergence(2, [&](Communicator& comm) {
    auto other = comm.split(0);
    const at::Tensor buffer = large();
    if (comm.rank() == 0) {
      const Pending pending = comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
      diverge();
    }
    other->barrier();
  });
}

TEST(AbortElsewhere, AnErrorThatIsNotOursIsKeptAsItIs) {
  EXPECT_THROW(
      run_workers(
          3, kForever,
          [](Communicator& comm) {
            if (comm.rank() == 2) {
              throw std::out_of_range("index 12");
            }
            comm.barrier();
          }),
      std::out_of_range);
}

// What the libraries throw where there is no room, by the names of users.
TEST(ExitCodes, NoMemoryAndNoThreadsAreTheConfigurations) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {std::int64_t{1} << 56},
           {std::int64_t{1} << 60},
           {std::int64_t{1} << 62},
           {std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
    const auto [code, text] = heard_of([&] { at::zeros(sizes, at::kFloat); });
    EXPECT_EQ(code, 78) << text;
    expect_has(text, "out of memory");
    EXPECT_EQ(text.find("alloc_cpu"), std::string::npos) << text;
  }
  EXPECT_EQ(heard_of([] { throw std::bad_alloc(); }).first, 78);
  EXPECT_EQ(heard_of([] { std::vector<int>().reserve(SIZE_MAX / 2); }).first, 78);
  EXPECT_EQ(
      heard_of([] {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }).first,
      78);
  // All else stays what it is, without LibTorch's stack.
  const auto [code, text] = heard_of([] { at::zeros({3}, at::kFloat).add_(at::zeros({4})); });
  EXPECT_EQ(code, 1);
  EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
  EXPECT_EQ(heard_of([] { throw Error(ErrorKind::Io, "x"); }).first, 74);
}

TEST(AbortElsewhere, OtherWorldsGoOn) {
  const auto broken = std::make_shared<LocalWorld>(kForever);
  const auto bad = broken->communicators(2);
  const auto good = std::make_shared<LocalWorld>(kForever)->communicators(1);
  EXPECT_EQ(broken->cause(), nullptr);
  broken->abort(std::make_exception_ptr(std::runtime_error("gone")));
  EXPECT_NE(broken->cause(), nullptr);
  EXPECT_THROW(bad[0]->check_peers(), Error);
  EXPECT_THROW(bad[1]->barrier(), Error);
  EXPECT_NO_THROW(good[0]->check_peers());
  EXPECT_NO_THROW(good[0]->barrier());
}

TEST(TimeOut, NamesTheCallAndTheWorkersThatDidNotCome) {
  std::atomic<bool> over = false;
  const auto body = [&](Communicator& comm) {
    auto half = comm.split(comm.rank() / 2);
    if (comm.rank() == 3) {
      while (!over) {
        std::this_thread::yield();
      }
      comm.check_peers();
      ADD_FAILURE() << "the late worker was not told";
    } else if (comm.rank() == 2) {
      try {
        half->all_reduce(large(), ReduceOp::Sum, Purpose::Gradient).wait();
      } catch (...) {
        over = true;
        throw;
      }
    }
  };
  const std::string text = expect_error(
      [&] { run_workers(4, 0.1, body); }, ErrorKind::PeerLost,
      {"all_reduce of 100001 Float", "waited 0.1 s for worker 3", "train.timeout",
       "--resume auto"});
  EXPECT_EQ(text.find("worker 2"), std::string::npos);
}

TEST(TimeOut, KnowsWhoDidNotCome) {
  const auto late = [](const std::vector<int>& missing) {
    return std::make_exception_ptr(TimedOut("barrier", 3, missing));
  };
  EXPECT_EQ(worker_of(late({2, 5}), 7), 2);
  EXPECT_EQ(worker_of(late({}), 7), 7);
  const Error other(ErrorKind::PeerLost, "gone");
  EXPECT_EQ(worker_of(std::make_exception_ptr(other), 7), 7);
  EXPECT_TRUE(is_echo(late({2, 5})));
  expect_has(message_of(late({2, 5})), "waited 3 s for worker 2, worker 5,");
  expect_has(message_of(late({})), "waited 3 s for the other workers,");
  // It stays what it is for everybody who is told of it.
  Failure failure;
  failure.set(late({4}));
  try {
    failure.throw_if_happened();
    ADD_FAILURE();
  } catch (...) {
    EXPECT_EQ(worker_of(std::current_exception(), 7), 4);
  }
}

using CollectiveCall = std::function<void(Communicator&)>;

CollectiveCall reduce_of(std::int64_t numel, at::ScalarType type, ReduceOp op) {
  return [=](Communicator& comm) {
    comm.all_reduce(at::zeros({numel}, type), op, Purpose::Gradient).wait();
  };
}

class Mismatch : public ::testing::TestWithParam<
                     std::tuple<const char*, CollectiveCall, CollectiveCall, const char*>> {};

TEST_P(Mismatch, IsAnErrorOnEveryMemberNamingBoth) {
  const auto& [name, usual, other, part] = GetParam();
  std::atomic<int> told = 0;
  const auto body = [&](Communicator& comm) {
    try {
      (comm.rank() == 2 ? other : usual)(comm);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Config);
      expect_has(error.what(), "worker 0 all_reduce of 5 Float on cpu, sum");
      expect_has(error.what(), std::string("worker 2 ") + part);
      ++told;
      throw;
    }
  };
  expect_error([&] { run_workers(3, kForever, body); }, ErrorKind::Config);
  EXPECT_EQ(told, 3);
}

const CollectiveCall kUsual = reduce_of(5, at::kFloat, ReduceOp::Sum);
INSTANTIATE_TEST_SUITE_P(
    Calls, Mismatch,
    ::testing::Values(
        std::tuple{
            "Size", kUsual, reduce_of(600001, at::kFloat, ReduceOp::Sum),
            "all_reduce of 600001 Float"},
        std::tuple{"Dtype", kUsual, reduce_of(5, at::kHalf, ReduceOp::Sum), "all_reduce of 5 Half"},
        std::tuple{
            "Op", kUsual, reduce_of(5, at::kFloat, ReduceOp::Mean),
            "all_reduce of 5 Float on cpu, mean"},
        std::tuple{
            "Kind", kUsual, CollectiveCall([](Communicator& comm) {
              comm.broadcast(at::zeros({5}), 0, Purpose::Sync).wait();
            }),
            "broadcast of 5 Float on cpu, root 0"},
        std::tuple{
            "Barrier", kUsual, CollectiveCall([](Communicator& comm) { comm.barrier(); }),
            "barrier"},
        std::tuple{
            "Split", kUsual, CollectiveCall([](Communicator& comm) { comm.split(0); }), "split"}),
    [](const auto& test) { return std::string(std::get<0>(test.param)); });

TEST(BadBuffers, AreRefusedBeforeAnythingIsPosted) {
  const auto world = std::make_shared<LocalWorld>(kForever);
  const auto comms = world->communicators(1);
  Communicator& comm = *comms[0];
  const auto expect_refused = [](const std::function<void()>& call, int line = __builtin_LINE()) {
    expect_error(call, ErrorKind::Config, {}, __FILE__, line);
  };
  const auto expect_no_sum = [&](const at::Tensor& t, ReduceOp op = ReduceOp::Sum,
                                 int line = __builtin_LINE()) {
    expect_refused([&] { comm.all_reduce(t, op, Purpose::Gradient).wait(); }, line);
  };
  expect_no_sum(at::zeros({2, 2}));
  expect_no_sum(at::zeros({4, 2}).select(1, 0));
  expect_no_sum(at::zeros({4}, at::kBool));
  expect_no_sum(at::Tensor());
  expect_no_sum(at::zeros({4}, at::kInt), ReduceOp::Mean);
  expect_refused([&] { comm.broadcast(at::zeros({4}), 1, Purpose::Sync).wait(); });
  expect_refused(
      [&] { comm.all_gather(at::zeros({4}), at::zeros({3}), {4}, Purpose::Factors).wait(); });
  expect_refused([&] {
    comm.reduce_scatter(at::zeros({3}), at::zeros({4}), ReduceOp::Sum, Purpose::Sync).wait();
  });
  EXPECT_NO_THROW(comm.check_peers());
  expect_refused([&] { world->communicators(0); });
}

}  // namespace
}  // namespace abtrain::comm
