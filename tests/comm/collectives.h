// What every back end must do, as checks that each worker makes of a
// communicator: against sequential references.
#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "comm/communicator.h"
#include "comm/traffic.h"

namespace abtrain::comm {

inline at::Tensor input_of(int rank, std::int64_t numel, at::ScalarType type) {
  at::Generator generator = at::detail::createCPUGenerator(100 + rank);
  return at::isFloatingType(type) ? at::randn({numel}, generator, at::kDouble).to(type)
                                  : at::randint(0, 100, {numel}, generator, at::kLong).to(type);
}

// In rank order, in the wide type, rounded once.
inline at::Tensor sum_of(int n, std::int64_t numel, at::ScalarType type, ReduceOp op) {
  const auto wide = type == at::kDouble        ? at::kDouble
                    : at::isFloatingType(type) ? at::kFloat
                                               : at::kLong;
  at::Tensor sum = input_of(0, numel, type).to(wide);
  for (int i = 1; i < n; ++i) {
    const at::Tensor next = input_of(i, numel, type).to(wide);
    sum = op == ReduceOp::Max ? sum.maximum(next) : sum.add(next);
  }
  return (op == ReduceOp::Mean ? sum.div(static_cast<double>(n)) : sum).to(type);
}

// Both sides of the size below which the local back end works alone, and of a
// piece of the MPI back end's.
inline std::vector<std::int64_t> sizes_for(int workers) {
  return {0, 1, 5, 63, workers < 64 ? 70001 : 4097};
}

inline void check_all_reduce(Communicator& comm) {
  const int n = comm.size();
  for (const std::int64_t numel : sizes_for(n)) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max}) {
      const at::Tensor buffer = input_of(comm.rank(), numel, at::kFloat);
      comm.all_reduce(buffer, op, Purpose::Gradient).wait();
      EXPECT_TRUE(buffer.equal(sum_of(n, numel, at::kFloat, op)))
          << numel << " rank " << comm.rank();
    }
  }
}

inline void check_all_gather(Communicator& comm) {
  const int n = comm.size();
  for (const std::int64_t base : {0, 3, 9000}) {
    std::vector<std::int64_t> counts;
    std::vector<at::Tensor> inputs;
    for (int i = 0; i < n; ++i) {
      counts.push_back(base + i % 3);  // zero among them
      inputs.push_back(input_of(i, counts.back(), at::kFloat));
    }
    const at::Tensor wanted = at::cat(inputs);
    const at::Tensor out = at::full({wanted.numel()}, -1.0f);
    comm.all_gather(out, inputs[comm.rank()].clone(), counts, Purpose::Factors).wait();
    EXPECT_TRUE(out.equal(wanted));
  }
}

inline void check_all_gather_in_place(Communicator& comm) {
  const int n = comm.size();
  constexpr std::int64_t kEach = 9000;
  const at::Tensor out = at::full({n * kEach}, -1, at::kLong);
  const at::Tensor in = out.narrow(0, comm.rank() * kEach, kEach);
  in.fill_(comm.rank());
  const std::vector<std::int64_t> counts(n, kEach);
  comm.all_gather(out, in, counts, Purpose::Factors).wait();
  EXPECT_TRUE(out.equal(at::arange(n, at::kLong).repeat_interleave(kEach)));
}

inline void check_reduce_scatter(Communicator& comm) {
  const int n = comm.size();
  for (const std::int64_t numel : sizes_for(n)) {
    const at::Tensor wanted = sum_of(n, numel, at::kFloat, ReduceOp::Mean);
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
  }
}

// Member i has for member j the numbers 1000 i + 100 j, 1000 i + 100 j + 1, ...
inline void check_all_to_all(Communicator& comm) {
  const int n = comm.size();
  const auto values = [](int from, int to, std::int64_t count) {
    return at::arange(count, at::kInt).add(1000000 * from + 100 * to);
  };
  for (const std::int64_t base : {0, 3, 9000}) {
    std::vector<std::int64_t> counts;
    for (int i = 0; i < n; ++i) {
      counts.push_back(base + i % 3);  // zero among them
    }
    std::vector<at::Tensor> parts;
    std::vector<at::Tensor> wanted;
    const std::int64_t own = counts[comm.rank()];
    for (int i = 0; i < n; ++i) {
      parts.push_back(values(comm.rank(), i, counts[i]));
      wanted.push_back(values(i, comm.rank(), own));
    }
    const at::Tensor out = at::full({n * own}, -1, at::kInt);
    comm.all_to_all(out, at::cat(parts), counts, Purpose::Gradient).wait();
    EXPECT_TRUE(out.equal(at::cat(wanted))) << base;
  }
}

inline void check_broadcast(Communicator& comm) {
  const int n = comm.size();
  for (int root = 0; root < n; root += std::max(1, n / 4)) {
    for (const std::int64_t numel : {0, 7, 70001}) {
      const at::Tensor buffer = at::full({numel}, comm.rank(), at::kInt);
      comm.broadcast(buffer, root, Purpose::Factors).wait();
      EXPECT_TRUE(buffer.equal(at::full({numel}, root, at::kInt)));
    }
  }
}

inline void check_dtypes(Communicator& comm) {
  const int n = comm.size();
  for (const auto type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kByte}) {
    for (const std::int64_t numel : {37, 20001}) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Mean}) {
        if (op == ReduceOp::Mean && !at::isFloatingType(type)) {
          continue;
        }
        const at::Tensor buffer = input_of(comm.rank(), numel, type);
        comm.all_reduce(buffer, op, Purpose::Gradient).wait();
        EXPECT_TRUE(buffer.equal(sum_of(n, numel, type, op))) << c10::toString(type);
      }
    }
  }
}

// Waited for in any order, another one on each rank.
inline void check_many_at_once(Communicator& comm) {
  constexpr int kCalls = 20;
  const int n = comm.size();
  std::vector<at::Tensor> buffers;
  std::vector<Pending> pending;
  for (int i = 0; i < kCalls; ++i) {
    // Small and large ones by turns.
    const std::int64_t numel = i % 2 == 0 ? 11 : 100001;
    buffers.push_back(at::full({numel}, i + comm.rank(), at::kFloat));
    pending.push_back(comm.all_reduce(buffers.back(), ReduceOp::Sum, Purpose::Gradient));
  }
  comm.barrier();  // a call without a Pending between them
  for (int i = 0; i < kCalls; ++i) {
    const int k = (i * 7 + comm.rank() * 3) % kCalls;
    pending[k].wait();
    pending[k].wait();  // once more does nothing
    EXPECT_TRUE(buffers[k].eq(n * k + n * (n - 1) / 2).all().item<bool>()) << k;
  }
}

inline void check_dropped_pending(Communicator& comm) {
  const at::Tensor buffer = at::full({100001}, 1.0f);
  { const Pending dropped = comm.all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient); }
  EXPECT_TRUE(buffer.eq(comm.size()).all().item<bool>());
}

inline void check_pending_outlives_communicator(Communicator& comm) {
  const at::Tensor buffer = at::full({100001}, 1.0f);
  auto part = comm.split(0);
  Pending pending = part->all_reduce(buffer, ReduceOp::Sum, Purpose::Gradient);
  part.reset();
  pending.wait();
  EXPECT_TRUE(buffer.eq(comm.size()).all().item<bool>());
}

// Even and odd ranks.
inline void check_split_order(Communicator& comm) {
  const int rank = comm.rank();
  auto part = comm.split(rank % 2);
  std::vector<int> order;
  int sum = 0;
  for (int r = rank % 2; r < comm.size(); r += 2) {
    order.push_back(r);
    sum += r;
  }
  ASSERT_EQ(part->size(), static_cast<int>(order.size()));
  EXPECT_EQ(order[part->rank()], rank);
  const at::Tensor mine = at::full({1}, rank, at::kLong);
  part->all_reduce(mine, ReduceOp::Sum, Purpose::Sync).wait();
  EXPECT_EQ(mine.item<std::int64_t>(), sum);
}

// Halves, pairs and singles at work at the same time; a size divisible by 4.
inline void check_nested_splits(Communicator& comm) {
  const int n = comm.size();
  auto half = comm.split(comm.rank() / (n / 2));
  auto pair = half->split(half->rank() / 2);
  auto self = pair->split(pair->rank());
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
    EXPECT_TRUE(a.eq(n).all().item<bool>());
    EXPECT_TRUE(b.eq(n / 2).all().item<bool>());
    EXPECT_TRUE(c.eq(2).all().item<bool>());
    EXPECT_TRUE(d.eq(1).all().item<bool>());
  }
}

}  // namespace abtrain::comm
