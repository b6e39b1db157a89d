#include "ops/chunks.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <vector>

#include "chunk_cases.h"
#include "tensors.h"

namespace abtrain::ops {
namespace {

TEST(Chunks, NormsAreSumsOfSquaresOfTheSum) {
  for (const auto& [numel, chunk] : kChunkSizes) {
    for (const bool add : {true, false}) {
      // An odd begin: nothing is aligned.
      for (const std::int64_t begin : {0, 1}) {
        const at::Tensor u = randn(numel + begin, 1).narrow(0, begin, numel);
        const at::Tensor g = randn(numel + begin, 2).narrow(0, begin, numel);
        const at::Tensor sum = add ? u.add(g) : g.clone();
        const at::Tensor norms = at::empty({chunk_count(numel, chunk)});
        add_with_norms(u, g, add, chunk, norms);
        EXPECT_TRUE(u.equal(sum));
        for (std::int64_t c = 0; c < norms.numel(); ++c) {
          const std::int64_t size = std::min(chunk, numel - c * chunk);
          const auto wanted =
              sum.narrow(0, c * chunk, size).to(at::kDouble).square().sum().item<double>();
          ASSERT_NEAR(norms[c].item<double>(), wanted, 1e-6 * wanted + 1e-20)
              << numel << " in " << chunk << ", " << c;
        }
      }
    }
  }
}

TEST(Chunks, WhatIsTakenIsHalfAndTheRestStays) {
  for (const auto& [numel, chunk] : kChunkSizes) {
    for (const int members : {1, 2, 3, 8}) {
      const at::Tensor u = randn(numel, 3).mul_(100);
      const at::Tensor before = u.clone();
      const at::Tensor indices = some_chunks(chunk_count(numel, chunk));
      const at::Tensor wire = at::full({indices.numel() * chunk}, 9, at::kHalf);
      take_chunks(u, indices, chunk, members, wire);
      const float scale = 1.0f / static_cast<float>(members);
      at::Tensor wanted = before.clone();
      for (std::int64_t j = 0; j < indices.numel(); ++j) {
        const std::int64_t place = indices[j].item<std::int64_t>() * chunk;
        const std::int64_t size = std::min(chunk, numel - place);
        const at::Tensor sent = wire.narrow(0, j * chunk, size);
        ASSERT_TRUE(sent.equal(before.narrow(0, place, size).mul(scale).to(at::kHalf)));
        ASSERT_TRUE(wire.narrow(0, j * chunk + size, chunk - size).eq(0).all().item<bool>());
        // In fp64, rounded once: what a fused multiply-add gives.
        wanted.narrow(0, place, size)
            .copy_(
                before.narrow(0, place, size).to(at::kDouble).sub(sent.to(at::kDouble), members));
      }
      EXPECT_TRUE(u.equal(wanted)) << numel << " in " << chunk;
    }
  }
}

TEST(Chunks, PutsWhatWasTaken) {
  for (const auto& [numel, chunk] : kChunkSizes) {
    const at::Tensor indices = some_chunks(chunk_count(numel, chunk));
    const at::Tensor wire = randn(indices.numel() * chunk, 4).to(at::kHalf);
    const at::Tensor before = randn(numel, 5);
    at::Tensor added = before.clone();
    at::Tensor set = before.clone();
    for (std::int64_t j = 0; j < indices.numel(); ++j) {
      const std::int64_t place = indices[j].item<std::int64_t>() * chunk;
      const std::int64_t size = std::min(chunk, numel - place);
      const at::Tensor sent = wire.narrow(0, j * chunk, size).to(at::kFloat);
      set.narrow(0, place, size).copy_(sent);
      added.narrow(0, place, size).add_(sent);
    }
    at::Tensor out = before.clone();
    put_chunks(wire, indices, chunk, out, Put::Add);
    EXPECT_TRUE(out.equal(added)) << numel << " in " << chunk;
    out.copy_(before);
    put_chunks(wire, indices, chunk, out, Put::Set);
    EXPECT_TRUE(out.equal(set)) << numel << " in " << chunk;
  }
}

TEST(ChunksErrors, RefuseWhatDoesNotFit) {
  const at::Tensor u = randn(100, 1);
  EXPECT_THROW(add_with_norms(u, randn(99, 1), true, 10, at::empty({10})), std::logic_error);
  EXPECT_THROW(add_with_norms(u, u, false, 10, at::empty({9})), std::logic_error);
  const auto take = [&](std::vector<int> indices, std::int64_t size) {
    take_chunks(u, at::tensor(indices, at::kInt), 10, 2, at::empty({size}, at::kHalf));
  };
  EXPECT_THROW(take({1, 2}, 10), std::logic_error);
  EXPECT_THROW(take({2, 1}, 20), std::logic_error);
  EXPECT_THROW(take({1, 1}, 20), std::logic_error);
  EXPECT_THROW(take({10}, 10), std::logic_error);
  EXPECT_THROW(take({-1}, 10), std::logic_error);
  take({0, 9}, 20);
}

}  // namespace
}  // namespace abtrain::ops
