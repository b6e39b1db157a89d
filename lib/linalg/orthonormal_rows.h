// Orthonormal rows that span those of a short and wide matrix.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// rows: b x n, b <= n, fp32 or fp64, any device. By Cholesky, which takes only three
// products but loses half of the digits if rows are nearly dependent: call it
// twice for full accuracy. By Householder if Cholesky fails or its factor, of rows of
// length one, has a diagonal entry of at most `smallest`; rows that depend
// on others are then replaced by arbitrary ones.
at::Tensor orthonormal_rows(const at::Tensor& rows, double smallest = 1e-5);

// By Cholesky alone, of rows of length one; undefined where the above would take
// Householder.
at::Tensor by_cholesky(const at::Tensor& rows, double smallest);

}  // namespace abtrain::linalg
