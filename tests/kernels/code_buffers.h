// Buffers for the tests of kernels on blocks of codes.
#pragma once

#include <ATen/ops/randint.h>

#include <limits>
#include <vector>

#include "kernel_test.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

// Blocks of tensors: single numbers, full blocks, odd ends, an odd begin, which leaves every
// address unaligned; on a GPU also many blocks.
inline std::vector<CodeBlocks> block_sets() {
  return {
      CodeBlocks({{0, 1}}), CodeBlocks({{0, 4096}, {4096, 33}, {4129, 7}}),
      CodeBlocks({{1, 4100}, {5000, 2048}}),
      CodeBlocks({{0, large(2000000, 5000)}, {large(2000000, 5000), 33}})};
}

// Random numbers, and what is not finite among them.
inline at::Tensor odd_numbers(std::int64_t numel, std::uint64_t seed) {
  const at::Tensor u = randn(numel, seed);
  u[numel / 2].fill_(-kInfinity);
  u[numel / 3].fill_(-0.0f);
  u[numel - 1].fill_(std::numeric_limits<float>::quiet_NaN());
  return u;
}

inline at::Tensor random_bytes(std::int64_t numel, std::uint64_t seed) {
  return at::randint(256, {numel}, at::detail::createCPUGenerator(seed), at::kByte);
}

inline at::Tensor random_words(std::int64_t numel, std::uint64_t seed) {
  return at::randint(
             std::numeric_limits<std::int64_t>::min() / 2,
             std::numeric_limits<std::int64_t>::max() / 2, {numel},
             at::detail::createCPUGenerator(seed), at::kLong)
      .to(at::kInt);
}

}  // namespace abtrain::ops
