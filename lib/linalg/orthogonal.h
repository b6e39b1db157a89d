// A random orthonormal matrix from a random matrix: what `init: orthogonal` puts in place of every
// weight.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// Q of the thin QR decomposition whose R has no negative diagonal entry, or for fewer rows than
// columns that of the transpose. Of a matrix of independent normal entries, Q is uniform (Haar)
// over all such matrices, as U V^T would be (Mezzadri 2007, "How to generate random matrices from
// the classical compact groups"). matrix: m x n, any float dtype, any strides; the result has its
// shape and dtype (contiguous). Throws Error(Diverged) when an entry is not finite.
at::Tensor orthogonal_basis(const at::Tensor& matrix);

}  // namespace abtrain::linalg
