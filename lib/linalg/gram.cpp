#include "linalg/gram.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <cmath>

#include "base/error.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {
namespace {

template <class T>
Matrix<T> view_of(const at::Tensor& w) {
  return {
      w.const_data_ptr<T>(), w.size(0), w.size(1), w.stride(0), w.stride(1)};
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
    // Half and bfloat16 fit into float32 exactly.
    const auto single = w.to(at::kFloat);
    add_gram(view_of<float>(single), scale, space, to, sum.size(1), width);
  }
  return sum;
}

at::Tensor product(const at::Tensor& w, double scale, int width) {
  if (!w.is_cuda()) {
    return lower_half(w, scale, width);
  }
  auto copy = w.to(at::kDouble);
  copy = scale == 1 ? copy : copy.mul(scale);
  return at::mm(copy.t(), copy);
}

}  // namespace

Gram gram_of(const at::Tensor& matrix, const std::string& layer, int width) {
  ABT_ASSERT(
      matrix.dim() == 2 && matrix.size(0) >= matrix.size(1) &&
          matrix.size(1) >= 1,
      "layer '",
      layer,
      "': wanted a matrix of m >= n >= 1");
  const auto w = matrix.detach();
  Gram gram{product(w, 1, width), 1};
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
    gram.matrix = product(w, gram.scale, width);
  }
  return gram;
}

}  // namespace abtrain::linalg
