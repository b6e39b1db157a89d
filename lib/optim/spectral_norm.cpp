#include "optim/spectral_norm.h"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mv.h>

namespace abtrain::optim {

at::Tensor spectral_norm(const at::Tensor& matrix, at::Tensor vector) {
  if (vector.numel() == 1) {
    return at::linalg_vector_norm(matrix);
  }
  const at::Tensor tall = matrix.size(0) < matrix.size(1) ? matrix.t() : matrix;
  vector.narrow(0, 0, 1).add_(at::linalg_vector_norm(vector).eq(0));
  const at::Tensor image = at::mv(tall.t(), at::mv(tall, vector));
  const at::Tensor square = at::linalg_vector_norm(image);
  // A matrix of zeros leaves zeros, and the next call starts again.
  vector.copy_(image).div_(square.clamp_min(1e-30));
  return square.sqrt();
}

}  // namespace abtrain::optim
