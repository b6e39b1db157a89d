// Orthonormal rows with the span of a short and wide matrix's rows.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// Returns b x n orthonormal rows. rows: b x n, b <= n, fp32 or fp64, on any device.
// They are scaled to length one and orthonormalized by Cholesky QR, which takes
// only three products but loses half of the digits if rows are nearly dependent:
// call this twice for full accuracy. If the Cholesky factorization fails, or its
// factor has a diagonal entry of at most `smallest`, Householder QR is used
// instead, which replaces rows that depend on others by arbitrary ones.
at::Tensor orthonormal_rows(const at::Tensor& rows, double smallest = 1e-5);

// By Cholesky alone, for rows of length one; undefined where orthonormal_rows() would use
// Householder QR.
at::Tensor by_cholesky(const at::Tensor& rows, double smallest);

}  // namespace abtrain::linalg
