#include "linalg/gram.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {
namespace {

template <class T>
Matrix<T> view_of(const at::Tensor& w) {
  return {w.const_data_ptr<T>(), w.size(0), w.size(1), w.stride(0), w.stride(1)};
}

at::Tensor lower_half(const at::Tensor& w, double scale, int width) {
  const auto n = w.size(1);
  auto sum = symmetric_buffer(n);
  const auto scratch = at::empty({kGramRows, padded_size(n)}, at::kDouble);
  auto* to = sum.mutable_data_ptr<double>();
  auto* space = scratch.mutable_data_ptr<double>();
  if (w.scalar_type() == at::kDouble) {
    add_gram(view_of<double>(w), scale, space, to, sum.size(1), width);
  } else {
    // Half and bfloat16 are exact in float32.
    const auto single = w.to(at::kFloat);
    add_gram(view_of<float>(single), scale, space, to, sum.size(1), width);
  }
  return sum;
}

// Takes a few rows at a time, so that their float64 copy stays small. Each panel of columns starts
// at the diagonal, which saves nearly half of the products.
at::Tensor whole(const at::Tensor& w, double scale) {
  constexpr std::int64_t kRows = 8192;
  const auto n = w.size(-1);
  const auto panel = std::max<std::int64_t>(64, (n + 7) / 8);
  std::vector<std::int64_t> sizes = w.sizes().vec();
  sizes[sizes.size() - 2] = n;
  auto sum = at::zeros(sizes, w.options().dtype(at::kDouble));
  for (std::int64_t first = 0; first < w.size(-2); first += kRows) {
    auto rows = w.slice(-2, first, first + kRows).to(at::kDouble);
    rows = scale == 1 ? rows : rows.mul(scale);
    for (std::int64_t c = 0; c < n; c += panel) {
      sum.slice(-2, c)
          .slice(-1, c, c + panel)
          .add_(at::matmul(rows.slice(-1, c).mT(), rows.slice(-1, c, c + panel)));
    }
  }
  for (std::int64_t c = panel; c < n; c += panel) {
    sum.slice(-2, c - panel, c).slice(-1, c).copy_(sum.slice(-2, c).slice(-1, c - panel, c).mT());
  }
  return sum;
}

}  // namespace

Gram gram_of(const at::Tensor& matrix, const std::string& layer, int width) {
  ABT_ASSERT(
      matrix.size(-2) >= matrix.size(-1) && matrix.size(-1) >= 1,
      "layer '{}': expected a matrix with m >= n >= 1", layer);
  const auto w = matrix.detach();
  const auto product = [&](double scale) {
    return w.is_cuda() ? whole(w, scale) : lower_half(w, scale, width);
  };
  Gram gram{product(1), 1};
  // The trace is the sum of all squares. If it is not finite, tiny or huge, W is checked and scaled
  // below.
  const double trace = gram.matrix.diagonal(0, -2, -1).sum().item<double>();
  if (trace > 1e-200 && trace < 1e200) {
    return gram;
  }
  const double largest = at::linalg_vector_norm(w.to(at::kDouble), INFINITY).item<double>();
  check_finite(largest, layer);
  if (largest > 0) {
    gram.scale = std::ldexp(1.0, -std::ilogb(largest));
    gram.matrix = product(gram.scale);
  }
  return gram;
}

void check_finite(double largest, const std::string& layer) {
  ABT_CHECK(
      std::isfinite(largest), Diverged,
      "layer '{}': the weights hold a value that is not finite (NaN or "
      "infinite), so they cannot be decomposed",
      layer);
}

}  // namespace abtrain::linalg
