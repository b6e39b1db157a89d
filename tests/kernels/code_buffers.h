// Buffers for the tests of kernels on blocks of codes.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <cstring>
#include <limits>
#include <vector>

#include "ops/code_blocks.h"

namespace abtrain::kernels {

// Sets of tensors: single numbers, full blocks, odd ends, an odd begin, which
// leaves every address unaligned.
inline std::vector<std::vector<ops::CodeBlocks::Tensor>> tensor_sets() {
  return {{{0, 1}}, {{0, 4096}, {4096, 33}, {4129, 7}}, {{1, 4100}, {5000, 2048}}};
}

inline at::Tensor random_floats(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

inline at::Tensor random_words(std::int64_t numel, std::uint64_t seed) {
  return at::randint(
             std::numeric_limits<std::int64_t>::min() / 2,
             std::numeric_limits<std::int64_t>::max() / 2, {numel},
             at::detail::createCPUGenerator(seed), at::kLong)
      .to(at::kInt);
}

// NaNs among them.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace abtrain::kernels
