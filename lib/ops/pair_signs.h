// The decisions of PairBalance (Cooper et al., "Coordinating Distributed Example Orders for
// Provably Accelerated Training", arXiv 2302.00845, algorithm 2) on rows D_0, D_1, ... (differences
// of gradients) in turn, that is
//   sign_j = <S, D_j> <= 0 ? +1 : -1;  S += sign_j D_j,
// computed from inner products alone. Let S be the sum before the first row, and S_j the sum before
// row j. Then
//   <S_j, D_j> = <S, D_j> + sum over i < j of sign_i <D_i, D_j>.
//
// The coordinates of the rows may therefore be spread over workers: the sum of the workers'
// products is the product of whole rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/orders/pair_signs.h"

namespace abtrain::ops {

using kernels::kMaxPairRows;

// triangle: fp32, n (n + 1) / 2 elements, n = 1 .. kMaxPairRows. At index
// j (j + 1) / 2 + i it holds <D_j, D_i> for i < j, and <S, D_j> for i = j.
// signs: int8, n. Sums are taken in the order of i, so that CPU and GPU decide
// alike; NaN gives -1. On CUDA the kernel is queued on this thread's current
// stream.
void pair_signs(const at::Tensor& triangle, const at::Tensor& signs);

}  // namespace abtrain::ops
