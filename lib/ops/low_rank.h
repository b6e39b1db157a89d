// The product of two thin matrices, P of r x n and Q of r x m, as a matrix of
// n x m: out = P^T Q, or out -= P^T Q.
//
// fp32, contiguous, on one device. On the CPU each number is one chain of fused
// multiply-adds over the ranks, in their order: the same bits on every worker,
// which a library's product need not have. On CUDA it is LibTorch's product.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void low_rank_product(
    const at::Tensor& p,
    const at::Tensor& q,
    const at::Tensor& out);
void subtract_low_rank_product(
    const at::Tensor& p,
    const at::Tensor& q,
    const at::Tensor& out);

}  // namespace abtrain::ops
