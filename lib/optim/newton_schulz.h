// Newton-Schulz iteration: makes nearly U V^T of a matrix U S V^T.
//
// The matrix is divided by max(its Frobenius norm, 1e-7). Then steps X <-
// 3.4445 X - 4.7750 (X X^T) X + 2.0315 (X X^T)^2 X follow, of which five take
// every singular value that is not tiny to between about 0.68 and 1.13. The
// coefficients are those of Jordan et al. 2024
// (https://kellerjordan.github.io/posts/muon/).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace abtrain::optim {

struct NewtonSchulz {
  std::int64_t steps = 5;

  // Replaces each matrix by `scale` times its orthogonalization: together() in bf16
  // on a GPU; on the CPU in_bf16() with the precision kBFloat16, else one_by_one().
  // All are fp32, row-major, of one shape and on one device. The host does not
  // wait.
  void apply(const std::vector<at::Tensor>& matrices, double scale, at::ScalarType precision) const;

  // Products of factors in bf16 with sums in fp32, on the CPU.
  void in_bf16(const std::vector<at::Tensor>& matrices, double scale) const;
  // The other two forms, on any device. together(): batched products in kBFloat16
  // or kFloat, the faster form of many small matrices.
  void together(const std::vector<at::Tensor>& matrices, double scale, at::ScalarType type) const;
  // One matrix after the other, in fp32; long ones by their Gram matrices, two
  // to three times as fast. On the CPU, both forms compute half of a large
  // symmetric product and mirror it.
  void one_by_one(const std::vector<at::Tensor>& matrices, double scale) const;
};

}  // namespace abtrain::optim
