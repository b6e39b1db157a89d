// Eigenvalues and singular values by LAPACK's drivers (cuSOLVER's on a GPU)
// through LibTorch, in float64, with an end in every case: an entry that is not
// finite is Error(Diverged), which names `what` (the layer), and where a driver
// does not converge on finite numbers, Jacobi rotations on the CPU do.
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
// symmetric: n x n, float64, of no negative eigenvalues but by rounding, as a
// Gram matrix.
SymmetricEigen eigh(const at::Tensor& symmetric, const std::string& what);

// The result of `driver`, else of jacobi_svd().
ThinSvd svd_by(
    const SvdDriver& driver,
    const at::Tensor& matrix,
    const std::string& what);
// One-sided Jacobi rotations (Hestenes): slow, but they cannot fail. On the
// CPU; the result lies where the matrix does.
ThinSvd jacobi_svd(const at::Tensor& matrix);

}  // namespace abtrain::linalg
