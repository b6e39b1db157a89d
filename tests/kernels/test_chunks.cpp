#include "kernels/blocks/chunks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ops/chunks.h"

namespace abtrain::kernels {
namespace {

at::Tensor normal(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

at::Tensor some_chunks(std::int64_t count) {
  std::vector<int> taken;
  for (std::int64_t c = 0; c < count; ++c) {
    if (c == 0 || c == count - 1 || c % 5 < 2) {
      taken.push_back(static_cast<int>(c));
    }
  }
  return at::tensor(taken, at::kInt);
}

// Chunks of whole packets and not, full blocks of chunks and not.
const std::vector<std::pair<std::int64_t, std::int64_t>> kSizes = {
    {1, 64}, {2240, 64}, {300, 128}, {100, 7}, {30, 1}};

TEST(ChunkKernels, NormsEqualTheCpuFormToTheBit) {
  for (const auto& [numel, chunk] : kSizes) {
    for (const bool add : {true, false}) {
      // An odd begin takes the path without packets.
      for (const std::int64_t begin : {0, 1}) {
        const at::Tensor wanted = normal(numel + begin, 1);
        const at::Tensor got = wanted.clone();
        const at::Tensor g = normal(numel + begin, 2);
        const std::int64_t count = ops::chunk_count(numel, chunk);
        const at::Tensor norms = at::empty({count});
        const at::Tensor got_norms = at::full({count + 1}, 7.0f);
        ops::add_with_norms(
            wanted.narrow(0, begin, numel), g.narrow(0, begin, numel), add, chunk, norms);
        ASSERT_EQ(
            add_with_norms(
                {got.mutable_data_ptr<float>() + begin, g.const_data_ptr<float>() + begin, add,
                 numel, chunk, got_norms.mutable_data_ptr<float>()},
                nullptr),
            0);
        ASSERT_TRUE(got.equal(wanted)) << numel << " in " << chunk;
        ASSERT_TRUE(got_norms.narrow(0, 0, count).equal(norms))
            << numel << " in " << chunk << " from " << begin;
        ASSERT_EQ(got_norms[count].item<float>(), 7.0f);
      }
    }
  }
}

TEST(ChunkKernels, TakeAndPutEqualTheCpuFormsToTheBit) {
  for (const auto& [numel, chunk] : kSizes) {
    for (const std::int64_t begin : {0, 1, 4}) {
      const at::Tensor wanted = normal(numel + begin, 3);
      const at::Tensor got = wanted.clone();
      const at::Tensor u = wanted.narrow(0, begin, numel);
      float* pointer = got.mutable_data_ptr<float>() + begin;
      const at::Tensor indices = some_chunks(ops::chunk_count(numel, chunk));
      const at::Tensor wire = at::empty({indices.numel() * chunk}, at::kHalf);
      const at::Tensor got_wire = at::full({wire.numel()}, 9, at::kHalf);
      const Chunks chunks{indices.const_data_ptr<std::int32_t>(), indices.numel(), chunk, numel};
      ops::take_chunks(u, indices, chunk, 3, wire);
      ASSERT_EQ(take_chunks({chunks, pointer, 3, got_wire.mutable_data_ptr()}, nullptr), 0);
      ASSERT_TRUE(got.equal(wanted)) << numel << " in " << chunk;
      ASSERT_TRUE(got_wire.equal(wire)) << numel << " in " << chunk;
      for (const bool add : {true, false}) {
        ops::put_chunks(wire, indices, chunk, u, add ? ops::Put::Add : ops::Put::Set);
        ASSERT_EQ(put_chunks({chunks, wire.const_data_ptr(), pointer, add}, nullptr), 0);
        ASSERT_TRUE(got.equal(wanted)) << numel << " in " << chunk;
      }
    }
  }
}

}  // namespace
}  // namespace abtrain::kernels
