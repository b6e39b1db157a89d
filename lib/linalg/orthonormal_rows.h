// Computes orthonormal rows with the same span as the rows of a short, wide matrix.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// Returns b x n orthonormal rows. rows: b x n, b <= n, fp32 or fp64, on any device. The rows are
// scaled to length one and orthonormalized by Cholesky QR, which takes only three products but
// loses half of the digits if rows are nearly dependent: call this twice for full accuracy. If the
// Cholesky factorization fails, or its factor has a diagonal entry of at most `smallest`,
// Householder QR is used instead, which replaces rows that depend on other rows by arbitrary rows.
at::Tensor orthonormal_rows(const at::Tensor& rows, double smallest = 1e-5);

// Like orthonormal_rows(), for rows of length one, but returns an undefined tensor in the cases in
// which orthonormal_rows() uses Householder QR.
at::Tensor by_cholesky(const at::Tensor& rows, double smallest);

}  // namespace abtrain::linalg
