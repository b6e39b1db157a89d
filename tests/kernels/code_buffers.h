// Buffers for the tests of ops on blocks of codes.
#pragma once

#include "op_test.h"
#include "ops/code_blocks.h"

namespace abtrain::ops {

// Blocks of tensors: single numbers, full blocks, odd ends, an odd begin, which leaves every
// address unaligned; on a GPU also many blocks.
inline std::vector<CodeBlocks> block_sets(const Forms& forms) {
  const std::int64_t many = forms.large(2000000, 5000);
  return {
      CodeBlocks({{0, 1}}), CodeBlocks({{0, 4096}, {4096, 33}, {4129, 7}}),
      CodeBlocks({{1, 4100}, {5000, 2048}}), CodeBlocks({{0, many}, {many, 33}})};
}

// Random numbers, and what is not finite among them.
inline at::Tensor odd_numbers(std::int64_t numel, std::uint64_t seed) {
  const at::Tensor u = randn(numel, seed);
  u[numel / 2].fill_(-kInfinity);
  u[numel / 3].fill_(-0.0f);
  u[numel - 1].fill_(kNotFinite[0]);
  return u;
}

inline at::Tensor random_bytes(std::int64_t numel, std::uint64_t seed) {
  return randint(0, 256, {numel}, seed, at::kByte);
}

}  // namespace abtrain::ops
