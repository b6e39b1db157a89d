// Makes a random orthonormal matrix from a random matrix. `init: orthogonal` replaces every weight
// with such a matrix.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// Returns Q of the thin QR decomposition (of the transpose if there are fewer rows than columns) in
// which R has no negative diagonal entry. If the matrix has independent normal entries, Q is
// uniform (Haar) over all orthonormal matrices of its shape, as U V^T of its SVD would be (Mezzadri
// 2007, "How to generate random matrices from the classical compact groups"). matrix: m x n, any
// float dtype, any strides; the result has its shape and dtype (contiguous). Throws Error(Diverged)
// when an entry is not finite.
at::Tensor orthogonal_basis(const at::Tensor& matrix);

}  // namespace abtrain::linalg
