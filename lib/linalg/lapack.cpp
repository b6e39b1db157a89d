#include "linalg/lapack.h"

#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svd.h>
#include <c10/util/Exception.h>

#include "base/error.h"

namespace abtrain::linalg {
namespace {

void check_entries(const at::Tensor& matrix, const std::string& what) {
  ABT_CHECK(
      matrix.isfinite().all().item<bool>(), Diverged,
      "{}: a value is not finite (NaN or infinite), so there is no "
      "decomposition",
      what);
}

// Returns the matrix on the CPU, for LAPACK to try after cuSOLVER did not converge. Throws if the
// matrix is there already: then LAPACK itself did not converge.
at::Tensor for_lapack(const at::Tensor& matrix, const std::string& what) {
  ABT_CHECK(matrix.is_cuda(), Diverged, "{}: LAPACK's decomposition did not converge", what);
  return matrix.cpu();
}

}  // namespace

std::vector<double> to_host(const at::Tensor& values) {
  const auto host = values.cpu().contiguous();
  const double* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

ThinSvd gesdd(const at::Tensor& matrix, const std::string& what) {
  const at::Tensor w = matrix.detach().to(at::kDouble);
  check_entries(w, what);
  try {
    const auto [u, s, vh] = at::linalg_svd(w, /*full_matrices=*/false);
    return {u, s, vh.mT()};
  } catch (const c10::LinAlgError&) {
    const auto [u, s, v] = gesdd(for_lapack(w, what), what);
    return {u.to(w.device()), s.to(w.device()), v.to(w.device())};
  }
}

SymmetricEigen eigh(const at::Tensor& symmetric, const std::string& what) {
  check_entries(symmetric, what);
  try {
    const auto [values, vectors] = at::linalg_eigh(symmetric);
    return {values, vectors};
  } catch (const c10::LinAlgError&) {
    const auto [values, vectors] = eigh(for_lapack(symmetric, what), what);
    return {values.to(symmetric.device()), vectors.to(symmetric.device())};
  }
}

}  // namespace abtrain::linalg
