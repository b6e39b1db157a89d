// Eigenvalues and singular values by LAPACK's drivers (cuSOLVER's on a GPU)
// through LibTorch, in float64. If cuSOLVER does not converge, LAPACK takes its
// place; Error(Diverged), which names `what` (the layer), is thrown if LAPACK
// does not converge either, or if an entry is not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

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

// Returns the elements of a flat float64 tensor on any device.
std::vector<double> to_host(const at::Tensor& values);

// Decomposes one matrix, or each matrix of a batch; results then have the sizes of the batch in
// front. matrix: m x n, m >= n, any float dtype, on any device.
ThinSvd gesdd(const at::Tensor& matrix, const std::string& what = "a matrix");
// symmetric: n x n, float64.
SymmetricEigen eigh(const at::Tensor& symmetric, const std::string& what);

}  // namespace abtrain::linalg
