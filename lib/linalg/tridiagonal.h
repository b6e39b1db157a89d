// Symmetric eigenproblem in float64, cut in three so that a caller pays only
// for the eigenvectors that it keeps:
//   1. reduce: A = Q T Q^T, T tridiagonal (Householder, blocked as LAPACK's
//      dsytrd; its matrix-vector product runs at the speed of the cache);
//   2. all eigenvalues of T (QL without square roots, Pal, Walker and Kahan);
//   3. the first k eigenvectors (inverse iteration on T, then Q).
// LAPACK's own routines for 1 and 3 are not exported by LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "linalg/cpu_kernels.h"

namespace abtrain::linalg {

// Sizes are padded so that every column starts on a cache line and columns do
// not fall on the same lines of the first cache.
std::int64_t padded_size(std::int64_t n);
// Zeros for a symmetric n x n matrix, shaped stride x padded_size columns laid
// out one column after another: entry (i, j) of the lower half is at [j][i].
at::Tensor symmetric_buffer(std::int64_t n);

struct Tridiagonal {
  std::int64_t n = 0;
  std::vector<double> diagonal;  // n
  std::vector<double> off;       // n - 1 (off[i] couples i and i + 1)
  std::vector<double> tau;       // n - 1, of the reflectors
  at::Tensor reflectors;         // the buffer: reflector j below [j][j]
};

// Overwrites `buffer` (symmetric_buffer, lower half filled, finite).
Tridiagonal tridiagonalise(
    const at::Tensor& buffer,
    std::int64_t n,
    int width = best_width());

// All eigenvalues, descending, to about machine precision of the largest. By
// bisection (Sturm sequences, slower, but they cannot fail) where QL needs more
// than 30 sweeps a value.
std::vector<double> eigenvalues(const Tridiagonal& t);
std::vector<double> eigenvalues_by_bisection(const Tridiagonal& t);

// n x k, orthonormal columns: eigenvectors of the k largest eigenvalues, in
// the order of `values` (from eigenvalues()). Inside a cluster any basis.
at::Tensor eigenvectors(
    const Tridiagonal& t,
    const std::vector<double>& values,
    std::int64_t k);

}  // namespace abtrain::linalg
