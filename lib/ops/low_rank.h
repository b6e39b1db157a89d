// The product of two thin matrices, P (r x n) and Q (r x m), as an n x m
// matrix: out = P^T Q, or out -= P^T Q.
//
// All are fp32, contiguous and on one device. On the CPU each element is one chain of fused
// multiply-adds over the r ranks in order. Unlike a library's product, it therefore has the same
// bits on all workers. On CUDA it is LibTorch's product.
#pragma once

#include <ATen/core/Tensor.h>

namespace abtrain::ops {

void low_rank_product(const at::Tensor& p, const at::Tensor& q, const at::Tensor& out);
void subtract_low_rank_product(const at::Tensor& p, const at::Tensor& q, const at::Tensor& out);

}  // namespace abtrain::ops
