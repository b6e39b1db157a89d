// The spectral norm (largest singular value) of a matrix that changes slowly.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::optim {

// matrix: a x b, fp32. vector: min(a, b) elements, kept from call to call: all
// zeros at first, which stands for the first unit vector; that is the singular
// vector of a factor that was just decomposed. One step of power iteration
// updates it. Returns a scalar, at most the norm and close to it while the
// matrix changes slowly; it is exact where min(a, b) is 1. The host does not
// wait.
at::Tensor spectral_norm(const at::Tensor& matrix, at::Tensor vector);

}  // namespace abtrain::optim
