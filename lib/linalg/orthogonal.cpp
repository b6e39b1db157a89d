#include "linalg/orthogonal.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "linalg/svd.h"

namespace abtrain::linalg {
namespace {

// W (W^T W)^(-1/2) by way of the Gram matrix. A W far from square is well
// conditioned and float32 keeps its digits; otherwise everything is in float64,
// and one Newton-Schulz step squares the remaining error in orthogonality.
at::Tensor by_gram(const at::Tensor& matrix, const Decomposition& decomposition) {
  const auto& values = decomposition.singular_values();
  const auto n = matrix.size(1);
  const auto v = decomposition.right(n);
  auto inverse = at::empty({n}, at::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    inverse.mutable_data_ptr<double>()[i] = 1 / values[i];
  }
  const auto root = at::mm(v.mul(inverse.to(v.device())), v.t());
  constexpr double kWell = 10;  // about a Gaussian matrix with m = 1.5 n
  if (matrix.scalar_type() == at::kFloat && values.front() < kWell * values.back()) {
    return at::mm(matrix, root.to(at::kFloat));
  }
  const auto w = matrix.to(at::kDouble);
  const auto q = at::mm(w, root);
  return q.mul(1.5).sub(at::mm(q, at::mm(q.t(), q)), 0.5);
}

}  // namespace

at::Tensor orthogonal_basis(const at::Tensor& matrix) {
  if (matrix.size(0) < matrix.size(1)) {
    return orthogonal_basis(matrix.t()).t().contiguous();
  }
  const auto w = matrix.detach();
  const Decomposition decomposition(w, "orthogonal initialization");
  const auto& values = decomposition.singular_values();
  at::Tensor basis;
  if (values.back() > 1e-5 * values.front()) {
    basis = by_gram(w, decomposition);
  } else {
    const auto exact = gesdd(w);
    basis = at::mm(exact.u, exact.v.t());
  }
  return basis.to(matrix.scalar_type()).contiguous();
}

}  // namespace abtrain::linalg
