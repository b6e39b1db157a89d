#include "linalg/lapack.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "base/error.h"

namespace abtrain::linalg {
namespace {

// The largest magnitude; throws if an entry is not finite (a NaN counts as the
// largest).
double largest_entry(const at::Tensor& matrix, const std::string& what) {
  if (matrix.numel() == 0) {
    return 0;
  }
  const double largest =
      at::linalg_vector_norm(matrix, INFINITY).item<double>();
  ABT_CHECK(
      std::isfinite(largest),
      Diverged,
      "{}: a value is not finite (NaN or infinite), so there is no "
      "decomposition",
      what);
  return largest;
}

// One sweep over all pairs of rows of `x`, applying the same rotations to `v`;
// true if any pair was not yet orthogonal.
bool rotate_rows(at::Tensor& x, at::Tensor& v) {
  constexpr double kOrthogonal = 1e-15;
  const std::int64_t n = x.size(0);
  const std::int64_t m = x.size(1);
  auto* rows = x.mutable_data_ptr<double>();
  auto* basis = v.mutable_data_ptr<double>();
  const auto rotate =
      [](double* a, double* b, std::int64_t count, double c, double s) {
        for (std::int64_t k = 0; k < count; ++k) {
          const double left = a[k];
          a[k] = c * left - s * b[k];
          b[k] = s * left + c * b[k];
        }
      };
  bool rotated = false;
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    for (std::int64_t j = i + 1; j < n; ++j) {
      double* const a = rows + i * m;
      double* const b = rows + j * m;
      double aa = 0;
      double bb = 0;
      double ab = 0;
      for (std::int64_t k = 0; k < m; ++k) {
        aa += a[k] * a[k];
        bb += b[k] * b[k];
        ab += a[k] * b[k];
      }
      if (std::abs(ab) <= kOrthogonal * std::sqrt(aa) * std::sqrt(bb)) {
        continue;
      }
      rotated = true;
      const double zeta = (bb - aa) / (2 * ab);
      const double t =
          std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
      const double c = 1 / std::hypot(1.0, t);
      rotate(a, b, m, c, c * t);
      rotate(basis + i * n, basis + j * n, n, c, c * t);
    }
  }
  return rotated;
}

}  // namespace

ThinSvd jacobi_svd(const at::Tensor& matrix) {
  constexpr int kMaxSweeps = 60;  // ten are typical
  const at::Tensor w = matrix.detach().to(at::kDouble);
  // A power of two keeps the squares in range and does not change any digit.
  const double largest = largest_entry(w, "a matrix");
  const double scale =
      largest > 0 ? std::ldexp(1.0, -std::ilogb(largest)) : 1.0;
  at::Tensor x = w.cpu().t().mul(scale).contiguous();
  at::Tensor v = at::eye(x.size(0), at::kDouble);
  for (int sweep = 0; sweep < kMaxSweeps && rotate_rows(x, v); ++sweep) {
  }
  const at::Tensor lengths = at::linalg_vector_norm(x, 2, {1});
  const auto [s, order] = lengths.sort(0, /*descending=*/true);
  // Columns of length zero are replaced by some that complete the basis; the
  // signs that Householder chooses are undone.
  const at::Tensor unit = x.index_select(0, order).div(
      at::where(s.gt(0), s, at::ones_like(s)).unsqueeze(1));
  const auto [q, r] = at::linalg_qr(unit.t(), "reduced");
  const at::Tensor signs = r.diagonal().sign();
  const at::Tensor u =
      q.mul(at::where(signs.eq(0), at::ones_like(signs), signs));
  const at::Device device = matrix.device();
  return {
      u.to(device),
      s.div(scale).to(device),
      v.index_select(0, order).t().to(device)};
}

ThinSvd svd_by(
    const SvdDriver& driver,
    const at::Tensor& matrix,
    const std::string& what) {
  const at::Tensor w = matrix.detach().to(at::kDouble);
  largest_entry(w, what);
  try {
    return driver(w);
  } catch (const c10::LinAlgError&) {
    return jacobi_svd(w);
  }
}

ThinSvd gesdd(const at::Tensor& matrix, const std::string& what) {
  return svd_by(
      [](const at::Tensor& w) -> ThinSvd {
        auto [u, s, vh] = at::linalg_svd(w, /*full_matrices=*/false);
        return {u, s, vh.t()};
      },
      matrix,
      what);
}

SymmetricEigen eigh(const at::Tensor& symmetric, const std::string& what) {
  largest_entry(symmetric, what);
  try {
    auto [values, vectors] = at::linalg_eigh(symmetric);
    return {values, vectors};
  } catch (const c10::LinAlgError&) {
    // For a matrix without negative eigenvalues these are the singular values.
    const ThinSvd found = jacobi_svd(symmetric);
    return {found.s.flip(0), found.v.flip(1)};
  }
}

}  // namespace abtrain::linalg
