// Newton-Schulz iteration: turns a matrix U S V^T into nearly U V^T.
//
// Divides the matrix by max(its Frobenius norm, 1e-7), then takes steps X <- 3.4445 X - 4.7750 (X
// X^T) X + 2.0315 (X X^T)^2 X. Five steps take every singular value that is not tiny to between
// about 0.68 and 1.13. The coefficients are from Jordan et al. 2024
// (https://kellerjordan.github.io/posts/muon/).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace abtrain::optim {

struct NewtonSchulz {
  std::int64_t steps = 5;

  // Replaces each matrix by `scale` times its orthogonalization: on a GPU by together() in bf16; on
  // the CPU by in_bf16() if `precision` is kBFloat16, else by one_by_one(). All matrices are fp32,
  // row-major, of one shape and on one device. The host does not wait.
  void apply(const std::vector<at::Tensor>& matrices, double scale, at::ScalarType precision) const;

  // CPU only: rounds the operands of products to bf16 and sums in fp32. Like one_by_one(), computes
  // only half of a large symmetric product and mirrors it.
  void in_bf16(const std::vector<at::Tensor>& matrices, double scale) const;
  // On any device: multiplies batches of matrices in kBFloat16 or kFloat, which is faster for many
  // small matrices.
  void together(const std::vector<at::Tensor>& matrices, double scale, at::ScalarType type) const;
  // On any device: takes one matrix after another, in fp32. Iterates on the Gram matrix if the
  // aspect ratio is above 1.5, which is two to three times as fast.
  void one_by_one(const std::vector<at::Tensor>& matrices, double scale) const;
};

}  // namespace abtrain::optim
