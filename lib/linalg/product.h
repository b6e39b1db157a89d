// The singular value decomposition of a low-rank product P * Q, without forming
// the product.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linalg/svd.h"

namespace abtrain::linalg {

// P (m x r) * Q (r x n) = U S V^T with U = P * left, V^T = right * Q. In a grid (linalg/svd.h),
// each block is decomposed by itself, and all sizes have k x k in front.
struct ProductSvd {
  at::Tensor singular_values;  // r, float64, descending
  at::Tensor left;             // r x r, float64
  at::Tensor right;            // r x r, float64
};

// Uses the r x r Gram matrices of P and Q in float64 (their eigenvalues below 1e-12 of the largest
// count as zero) and gesdd of the r x r core. Throws Error(Diverged) naming `layer` when an entry
// is not finite.
ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q, const std::string& layer);

// Returns fp32 transforms a (r x kept) and b (kept x r) that keep `kept` singular values (of each
// block), at most r: A = P * a = U sqrt(S) and B = b * Q = sqrt(S) V^T.
LowRankPair transforms_from(const ProductSvd& svd, std::int64_t kept);

}  // namespace abtrain::linalg
