// The symmetric eigenproblem in float64, cut into three steps so that a caller
// pays only for the eigenvectors that it keeps:
//   1. reduce: A = Q T Q^T, T tridiagonal (Householder, blocked like LAPACK's
//      dsytrd; its matrix-vector product runs at the speed of the cache);
//   2. all eigenvalues of T (QL without square roots, Pal, Walker and Kahan);
//   3. the first k eigenvectors (inverse iteration on T, then Q).
// LibTorch does not export LAPACK's own routines for steps 1 and 3.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "linalg/cpu_kernels.h"

namespace abtrain::linalg {

// n, padded so that every column fills whole cache lines.
std::int64_t padded_size(std::int64_t n);
// A zero buffer for a symmetric n x n matrix: padded_size(n) columns stored one
// after another, each size(1) doubles apart; entry (i, j) of the lower half is
// at [j][i].
at::Tensor symmetric_buffer(std::int64_t n);

struct Tridiagonal {
  std::int64_t n = 0;
  std::vector<double> diagonal;  // n
  std::vector<double> off;       // n - 1 (off[i] couples i and i + 1)
  std::vector<double> tau;       // n - 1, of the reflectors
  at::Tensor reflectors;         // the buffer: reflector j below [j][j]
};

// Step 1. Overwrites `buffer`, a symmetric_buffer with a finite lower half; the result refers to
// it.
Tridiagonal tridiagonalize(const at::Tensor& buffer, std::int64_t n, int width = best_width());

// Step 2: all eigenvalues, descending, to about machine precision relative to
// the largest.
std::vector<double> eigenvalues(const Tridiagonal& t);

// Step 3: returns n x k orthonormal columns, the eigenvectors of the k largest eigenvalues, in the
// order of `values` (from eigenvalues()). Within a cluster of eigenvalues the basis is arbitrary.
at::Tensor eigenvectors(const Tridiagonal& t, const std::vector<double>& values, std::int64_t k);

}  // namespace abtrain::linalg
