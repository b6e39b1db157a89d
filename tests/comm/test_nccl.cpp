// NCCL against the local back end.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "comm/nccl_ranks.h"
#include "comm/traffic.h"
#include "error_of.h"

namespace abtrain::comm {
namespace {

at::Tensor whole_input_of(int rank, std::int64_t numel, at::ScalarType type) {
  at::Generator generator = at::detail::createCPUGenerator(100 + rank);
  // Small whole numbers: a sum is exact in any order and dtype.
  return at::randint(0, 9, {numel}, generator, at::kLong).to(type);
}

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16,
                                     at::kInt,   at::kLong,   at::kByte};

class GpuNccl : public GpuNcclRanks {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuNccl, ::testing::Values(1, 2, 4));

TEST_P(GpuNccl, ReducesAsTheLocalBackEndDoes) {
  run_nccl(GetParam(), kNcclTimeout, [](Communicator& comm, NcclWorld&, Communicator& local) {
    const at::Device gpu = device_of(comm.rank());
    const int n = comm.size();
    for (const auto type : kTypes) {
      for (const auto op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
        if (op == ReduceOp::Mean && !at::isFloatingType(type)) {
          continue;
        }
        // Below, at and above equal chunks.
        for (const std::int64_t numel : {0, 1, 4 * n, 4 * n + 3, 70001}) {
          const at::Tensor wanted = whole_input_of(comm.rank(), numel, type);
          const at::Tensor whole = wanted.to(gpu);
          const at::Tensor on_cpu = wanted.clone();
          local.all_reduce(wanted, op, Purpose::Gradient).wait();

          const at::Tensor in = whole.clone();
          comm.all_reduce(whole, op, Purpose::Gradient).wait();
          comm.all_reduce(on_cpu, op, Purpose::Metrics).wait();
          // A mean may be rounded otherwise.
          const double near = op == ReduceOp::Mean ? 1e-2 : 0;
          EXPECT_TRUE(whole.cpu().allclose(wanted, near, near))
              << c10::toString(type) << " " << numel;
          EXPECT_TRUE(on_cpu.allclose(wanted, near, near));

          const auto begin = chunk_begin(numel, n, comm.rank());
          const auto count = chunk_size(numel, n, comm.rank());
          const at::Tensor before = in.clone();
          const at::Tensor part = at::empty({count}, in.options());
          comm.reduce_scatter(part, in, op, Purpose::Sync).wait();
          const at::Tensor share = wanted.narrow(0, begin, count);
          EXPECT_TRUE(part.cpu().allclose(share, near, near)) << numel;
          EXPECT_TRUE(in.cpu().equal(before.cpu()));
          const at::Tensor own = in.narrow(0, begin, count);
          comm.reduce_scatter(own, in, op, Purpose::Sync).wait();
          EXPECT_TRUE(own.cpu().equal(part.cpu())) << numel;
        }
      }
    }
  });
}

TEST_P(GpuNccl, GathersAndBroadcasts) {
  const int n = GetParam();
  run_nccl(n, kNcclTimeout, [n](Communicator& comm, NcclWorld&, Communicator&) {
    const int rank = comm.rank();
    for (const at::Device device : {device_of(rank), at::Device(at::kCPU)}) {
      for (const std::int64_t uneven : {0, 1}) {
        for (const std::int64_t base : {0, 3, 9000}) {
          std::vector<std::int64_t> counts;
          std::vector<at::Tensor> inputs;
          for (int i = 0; i < n; ++i) {
            counts.push_back(base + uneven * (i % 3));
            inputs.push_back(whole_input_of(i, counts.back(), at::kDouble));
          }
          const at::Tensor wanted = at::cat(inputs);
          const at::Tensor nothing = at::full_like(wanted, -1.0);
          const at::Tensor out = nothing.to(device, false, true);
          comm.all_gather(out, inputs[rank].to(device), counts, Purpose::Factors).wait();
          EXPECT_TRUE(out.cpu().equal(wanted)) << base << " " << device;
          // In place.
          out.copy_(nothing);
          std::int64_t begin = 0;
          for (int i = 0; i < rank; ++i) {
            begin += counts[i];
          }
          const at::Tensor own = out.narrow(0, begin, counts[rank]);
          own.copy_(inputs[rank]);
          comm.all_gather(out, own, counts, Purpose::Factors).wait();
          EXPECT_TRUE(out.cpu().equal(wanted)) << base << " " << device;
        }
      }
      if (device.is_cuda()) {
        std::vector<std::int64_t> counts;
        std::vector<at::Tensor> parts;
        std::vector<at::Tensor> wanted;
        for (int i = 0; i < n; ++i) {
          counts.push_back(3 + i % 3);
        }
        for (int i = 0; i < n; ++i) {
          parts.push_back(at::full({counts[i]}, 100 * rank + i, at::kInt));
          wanted.push_back(at::full({counts[rank]}, 100 * i + rank, at::kInt));
        }
        const at::Tensor out = at::empty({n * counts[rank]}, wanted[0].options().device(device));
        comm.all_to_all(out, at::cat(parts).to(device), counts, Purpose::Gradient).wait();
        EXPECT_TRUE(out.cpu().equal(at::cat(wanted)));
      }
      for (int root = 0; root < n; ++root) {
        const at::Tensor buffer = at::full({70001}, rank, at::kInt).to(device);
        comm.broadcast(buffer, root, Purpose::Factors).wait();
        EXPECT_TRUE(buffer.cpu().eq(root).all().item<bool>());
      }
    }
  });
}

// As GpuLocal.CollectivesFollowTheStreams.
TEST_P(GpuNccl, CollectivesFollowTheStreams) {
  const int n = GetParam();
  run_nccl(n, kNcclTimeout, [n](Communicator& comm, NcclWorld&, Communicator&) {
    for (const std::int64_t numel : {1, 4097, 3000001}) {
      for (int round = 0; round < 20; ++round) {
        const at::Tensor buffer = on_gpu(comm, at::full({numel}, round + comm.rank(), at::kFloat));
        comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient).wait();
        const at::Tensor sum = buffer.clone();
        buffer.copy_(on_gpu(comm, at::full({numel}, comm.rank(), at::kFloat)));
        comm.broadcast(buffer, round % n, Purpose::Factors).wait();
        EXPECT_TRUE(sum.cpu().eq(n * round + n * (n - 1) / 2).all().item<bool>()) << round;
        EXPECT_TRUE(buffer.cpu().eq(round % n).all().item<bool>()) << round;
      }
    }
  });
}

TEST_P(GpuNccl, ManyUnderWayAndBuffersThatGo) {
  const int n = GetParam();
  run_nccl(n, kNcclTimeout, [n](Communicator& comm, NcclWorld&, Communicator&) {
    const auto filled = [&](std::int64_t numel, double value) {
      return on_gpu(comm, at::full({numel}, value, at::kFloat));
    };
    std::vector<at::Tensor> buffers;
    std::vector<Pending> pending;
    for (int i = 0; i < 20; ++i) {
      buffers.push_back(filled(100001, i + comm.rank()));
      pending.push_back(comm.all_reduce(buffers.back(), ReduceOp::Sum, Purpose::Gradient));
      {
        // Its memory goes back while the transfer may still run.
        const Pending dropped = comm.all_reduce(filled(50001, 1), ReduceOp::Sum, Purpose::Gradient);
      }
      filled(50001, -1);
    }
    comm.barrier();
    for (int k = 19; k >= 0; --k) {
      pending[k].wait();
      pending[k].wait();  // once more does nothing
      EXPECT_TRUE(buffers[k].cpu().eq(n * k + n * (n - 1) / 2).all().item<bool>());
    }
  });
}

TEST_P(GpuNccl, SplitsByColorOrderedByRank) {
  const int n = GetParam();
  run_nccl(n, kNcclTimeout, [n](Communicator& comm, NcclWorld&, Communicator& l) {
    const int rank = comm.rank();
    // Two halves, one whole, one each; a color may be negative.
    for (const int color : {rank < (n + 1) / 2 ? -5 : 7, 3, rank}) {
      const auto part = comm.split(color);
      const auto wanted = l.split(color);
      EXPECT_EQ(part->rank(), wanted->rank());
      EXPECT_EQ(part->size(), wanted->size());
      const at::Tensor mine = at::full({1}, rank, at::kLong);
      const at::Tensor all = at::empty({part->size()}, at::kLong);
      const std::vector<std::int64_t> ones(part->size(), 1);
      part->all_gather(all, mine, ones, Purpose::Metrics).wait();
      const at::Tensor expected = at::empty({part->size()}, at::kLong);
      wanted->all_gather(expected, mine, ones, Purpose::Metrics).wait();
      EXPECT_TRUE(all.equal(expected));
      const auto own = part->split(part->rank());
      EXPECT_EQ(own->size(), 1);
      const at::Tensor kept = mine.to(device_of(rank));
      own->all_reduce(kept, ReduceOp::Sum, Purpose::Sync).wait();
      EXPECT_EQ(kept.item<std::int64_t>(), rank);
      own->barrier();
      part->barrier();
    }
  });
}

TEST(GpuNcclAlone, AWorldOfOneNeedsNoNccl) {
  if (const auto lack = lacking(1); !lack.empty()) {
    GTEST_SKIP() << lack;
  }
  const auto world = NcclWorld::start(0, 1, device_of(0), kNcclTimeout, [](void*, std::size_t) {
    ADD_FAILURE() << "nothing to share";
  });
  const auto comm = world->communicator();
  for (const at::Device device : {device_of(0), at::Device(at::kCPU)}) {
    const at::Tensor buffer = at::arange(5, at::kFloat).to(device);
    const at::Tensor out = at::empty_like(buffer);
    comm->all_reduce(buffer, ReduceOp::Mean, Purpose::Gradient).wait();
    comm->all_gather(out, buffer, {5}, Purpose::Factors).wait();
    EXPECT_TRUE(out.cpu().equal(at::arange(5, at::kFloat)));
    EXPECT_EQ(comm->split(4)->size(), 1);
    comm->barrier();
  }
  world->abort(std::make_exception_ptr(std::runtime_error("gone")));
  EXPECT_THROW(comm->check_peers(), Error);
  EXPECT_THROW(comm->barrier(), Error);
}

// Runs everywhere.
TEST(NcclWorld, IsRefusedWithoutAGpu) {
  expect_error(
      [] { NcclWorld::start(0, 1, at::Device(at::kCPU), 1, [](void*, std::size_t) {}); },
      ErrorKind::Config, {nccl_version() == 0 ? "ABTRAIN_CUDA" : "got cpu"});
}

}  // namespace
}  // namespace abtrain::comm
