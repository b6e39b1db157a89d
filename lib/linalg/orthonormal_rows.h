// Orthonormal rows that span those of a short and wide matrix.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// rows: b x n, b <= n, float64, any device. By Cholesky, which is three
// products but loses half of the digits where rows are nearly dependent: call
// it twice for all of them. By Householder where Cholesky fails; then rows that
// depend on others become arbitrary ones.
at::Tensor orthonormal_rows(const at::Tensor& rows);

}  // namespace abtrain::linalg
