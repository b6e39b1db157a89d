// Matrices with known singular values, for the tests of this folder.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"

namespace abtrain::linalg {

// Rows and columns.
using MatrixShape = std::pair<std::int64_t, std::int64_t>;

inline at::Tensor vector_of(const std::vector<double>& values) {
  auto result = at::empty({std::ssize(values)}, at::kDouble);
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<double>());
  return result;
}

// Nearly normal entries (sum of four uniform ones, variance 1), float64.
inline at::Tensor noise(std::int64_t m, std::int64_t n, unsigned seed = 1) {
  auto result = at::empty({m, n}, at::kDouble);
  Random random(seed, RandomPurpose::Test);
  for (auto* p = result.mutable_data_ptr<double>(); p != result.mutable_data_ptr<double>() + m * n;
       ++p) {
    double sum = -2;
    for (int i = 0; i < 4; ++i) {
      sum += random.uniform();
    }
    *p = sum * std::sqrt(3.0);
  }
  return result;
}

inline at::Tensor orthonormal_noise(std::int64_t m, std::int64_t n, unsigned seed) {
  return std::get<0>(at::linalg_qr(noise(m, n, seed)));
}

// m x n, float64, with these singular values (n of them).
inline at::Tensor with_spectrum(
    std::int64_t m, const std::vector<double>& values, unsigned seed = 1) {
  const auto n = std::ssize(values);
  return at::mm(
      orthonormal_noise(m, n, seed).mul(vector_of(values)), orthonormal_noise(n, n, seed + 1).t());
}

inline double largest_difference(const at::Tensor& x, const at::Tensor& y) {
  return x.to(at::kDouble).sub(y.to(at::kDouble)).abs().max().item<double>();
}

inline double distance_from_orthonormal(const at::Tensor& columns) {
  const auto gram = at::mm(columns.t(), columns).to(at::kDouble);
  return largest_difference(gram, gram.new_ones({gram.size(0)}).diag());
}

}  // namespace abtrain::linalg
