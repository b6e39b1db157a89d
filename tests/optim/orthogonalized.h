// What Newton-Schulz makes of a matrix, in float64, by its definition.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace abtrain::testing {

inline at::Tensor orthogonalized(const at::Tensor& matrix, std::int64_t steps = 5) {
  at::Tensor x = matrix.to(at::kDouble);
  x = x / std::max(x.norm().item<double>(), 1e-7);
  for (std::int64_t step = 0; step < steps; ++step) {
    const at::Tensor gram = at::matmul(x, x.t());
    x = 3.4445 * x + at::matmul(-4.7750 * gram + 2.0315 * at::matmul(gram, gram), x);
  }
  return x;
}

}  // namespace abtrain::testing
