#include "linalg/gram.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {
namespace {

constexpr std::int64_t kRows = 1024;
constexpr std::int64_t kColumns = 64;

// Blocks of columns, each times the columns from its own on: the lower half.
at::Tensor lower_half(const at::Tensor& w, double scale) {
  const auto m = w.size(0);
  const auto n = w.size(1);
  auto sum = symmetric_buffer(n);
  const auto rows = std::min(m, kRows);
  // The copy keeps the way in which the matrix lies in memory.
  const bool by_columns = w.stride(0) < w.stride(1);
  const auto copy = by_columns ? at::empty({n, rows}, at::kDouble).t()
                               : at::empty({rows, n}, at::kDouble);
  for (std::int64_t first = 0; first < m; first += rows) {
    const auto last = std::min(first + rows, m);
    auto part = copy.slice(0, 0, last - first);
    part.copy_(w.slice(0, first, last));
    if (scale != 1) {
      part.mul_(scale);
    }
    for (std::int64_t c = 0; c < n; c += kColumns) {
      const auto end = std::min(c + kColumns, n);
      sum.slice(0, c, end).slice(1, c, n).addmm_(
          part.slice(1, c, end).t(), part.slice(1, c, n));
    }
  }
  return sum;
}

at::Tensor product(const at::Tensor& w, double scale) {
  if (!w.is_cuda()) {
    return lower_half(w, scale);
  }
  auto copy = w.to(at::kDouble);
  copy = scale == 1 ? copy : copy.mul(scale);
  return at::mm(copy.t(), copy);
}

}  // namespace

Gram gram_of(const at::Tensor& matrix, const std::string& layer) {
  ABT_ASSERT(
      matrix.dim() == 2 && matrix.size(0) >= matrix.size(1) &&
          matrix.size(1) >= 1,
      "layer '",
      layer,
      "': wanted a matrix of m >= n >= 1");
  const auto w = matrix.detach();
  Gram gram{product(w, 1), 1};
  // The trace is the sum of all squares: finite and not tiny, or look closer.
  const double trace = gram.matrix.diagonal().sum().item<double>();
  if (trace > 1e-200 && trace < 1e200) {
    return gram;
  }
  const double largest =
      at::linalg_vector_norm(w.to(at::kDouble), INFINITY).item<double>();
  ABT_CHECK(
      std::isfinite(largest),
      Diverged,
      "layer '",
      layer,
      "': the weights hold a value that is not finite (NaN or infinite), so "
      "they cannot be decomposed");
  if (largest > 0) {
    gram.scale = std::ldexp(1.0, -std::ilogb(largest));
    gram.matrix = product(w, gram.scale);
  }
  return gram;
}

}  // namespace abtrain::linalg
