// Random tensors, and whether two hold the same bits.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <cstdint>
#include <cstring>
#include <limits>

namespace abtrain::ops {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Normal random numbers.
inline at::Tensor randn(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

inline at::Tensor randn(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return at::randn({rows, columns}, at::detail::createCPUGenerator(seed), at::kFloat);
}

// NaNs among them.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace abtrain::ops
