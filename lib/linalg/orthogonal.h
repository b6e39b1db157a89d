// The orthonormal matrix nearest to a given one: what `init: orthogonal` puts
// in place of every weight.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::linalg {

// U V^T of the thin SVD, so that all singular values are one. matrix: m x n in
// any orientation, any float dtype, any strides; the result has its shape and
// dtype (contiguous). Float64 inside. Throws Error(Diverged) when an entry is
// not finite.
at::Tensor orthogonal_basis(const at::Tensor& matrix);

}  // namespace abtrain::linalg
