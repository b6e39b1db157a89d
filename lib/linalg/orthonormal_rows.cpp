#include "linalg/orthonormal_rows.h"

#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

namespace abtrain::linalg {

at::Tensor by_cholesky(const at::Tensor& rows, double smallest) {
  const auto [factor, failed] = at::linalg_cholesky_ex(at::mm(rows, rows.t()));
  // After a failure the diagonal holds garbage, so it is multiplied by 0; one read from the device
  // then checks both the failure and the diagonal.
  if (!(factor.diagonal().min().mul(failed.eq(0)).item<double>() > smallest)) {
    return {};
  }
  return at::linalg_solve_triangular(factor, rows, /*upper=*/false);
}

at::Tensor orthonormal_rows(const at::Tensor& rows, double smallest) {
  const auto length = at::linalg_vector_norm(rows, 2, {1}, /*keepdim=*/true).clamp_min(1e-300);
  const auto result = by_cholesky(rows.div(length), smallest);
  return result.defined() ? result
                          : std::get<0>(at::linalg_qr(rows.t(), "reduced")).t().contiguous();
}

}  // namespace abtrain::linalg
