// Eigenvalues and singular values by LAPACK's drivers (cuSOLVER's on a GPU)
// through LibTorch, in float64. Every call ends: an entry that is not finite
// throws Error(Diverged), which names `what` (the layer), and if a driver does
// not converge on finite numbers, Jacobi rotations on the CPU take its place.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace abtrain::linalg {

struct ThinSvd {
  at::Tensor u;  // m x n
  at::Tensor s;  // n, descending
  at::Tensor v;  // n x n, columns
};
struct SymmetricEigen {
  at::Tensor values;   // n, ascending
  at::Tensor vectors;  // n x n, columns
};

// matrix: m x n, m >= n, any float dtype, on any device.
using SvdDriver = std::function<ThinSvd(const at::Tensor& matrix)>;
ThinSvd gesdd(const at::Tensor& matrix, const std::string& what = "a matrix");
// symmetric: n x n, float64, with no negative eigenvalues except by rounding,
// such as a Gram matrix.
SymmetricEigen eigh(const at::Tensor& symmetric, const std::string& what);

// The result of `driver` or, if that does not converge, of jacobi_svd().
ThinSvd svd_by(
    const SvdDriver& driver,
    const at::Tensor& matrix,
    const std::string& what);
// One-sided Jacobi rotations (Hestenes): slow, but they cannot fail. They run
// on the CPU; the result is on the matrix's device.
ThinSvd jacobi_svd(const at::Tensor& matrix);

}  // namespace abtrain::linalg
