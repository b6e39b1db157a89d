#include "linalg/orthogonal.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>

#include "base/error.h"
#include "linalg/orthonormal_rows.h"

namespace abtrain::linalg {

at::Tensor orthogonal_basis(const at::Tensor& matrix) {
  if (matrix.size(0) < matrix.size(1)) {
    return orthogonal_basis(matrix.t()).t().contiguous();
  }
  const at::Tensor columns =
      matrix.detach().to(matrix.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).t();
  ABT_CHECK(
      at::isfinite(columns).all().item<bool>(), Diverged,
      "orthogonal initialization: an entry of the matrix is not finite");
  // Cholesky QR keeps all digits only if the matrix is well-conditioned, hence the high limit.
  const at::Tensor q = orthonormal_rows(columns, 0.3);
  const at::Tensor diagonal = q.mul(columns).sum(1, /*keepdim=*/true);  // of R
  return q.mul(at::where(diagonal < 0, -1, 1)).t().to(matrix.scalar_type()).contiguous();
}

}  // namespace abtrain::linalg
