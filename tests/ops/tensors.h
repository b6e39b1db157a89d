// Random tensors, and comparisons of tensors; LibTorch's operators that most tests of ops use.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cases.h"

// For what ops refuse: arguments that do not fit.
#define EXPECT_REFUSED(statement) EXPECT_THROW(statement, std::logic_error)

namespace abtrain::ops {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotFinite[] = {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity};

// Normal random numbers.
inline at::Tensor randn(std::int64_t numel, std::uint64_t seed) {
  return at::randn({numel}, at::detail::createCPUGenerator(seed), at::kFloat);
}

inline at::Tensor randn(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return at::randn({rows, columns}, at::detail::createCPUGenerator(seed), at::kFloat);
}

// Integers from `low` to below `high`.
inline at::Tensor randint(
    std::int64_t low, std::int64_t high, at::IntArrayRef sizes, std::uint64_t seed,
    at::ScalarType type) {
  return at::randint(low, high, sizes, at::detail::createCPUGenerator(seed), at::kLong).to(type);
}

// A flat tensor, filled up with zeros to a multiple of `unit`, as rows of `length`.
inline at::Tensor in_rows(const at::Tensor& flat, std::int64_t length, std::int64_t unit = 1) {
  const std::int64_t least = std::max(length, unit);
  const at::Tensor all = at::zeros({(flat.numel() + least - 1) / least * least}, flat.options());
  all.narrow(0, 0, flat.numel()).copy_(flat);
  return all.view({-1, length});
}

// The only element.
inline double number(const at::Tensor& tensor) {
  return tensor.item<double>();
}

// The largest magnitude of a difference, in fp64.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return number(a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max());
}

// NaNs among them.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace abtrain::ops
