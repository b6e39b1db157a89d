// The singular value decomposition of a low-rank product P * Q, without forming
// the product.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linalg/svd.h"

namespace abtrain::linalg {

// P (m x r) * Q (r x n) = U S V^T with U = P * left, V^T = right * Q; in a grid
// (linalg/svd.h), each block by itself, with k x k in front of all sizes.
struct ProductSvd {
  at::Tensor singular_values;  // r, float64, descending
  at::Tensor left;             // r x r, float64
  at::Tensor right;            // r x r, float64
};

// Uses the r x r Gram matrices of P and Q in float64 (their eigenvalues below 1e-12 of the largest
// count as zero) and gesdd of the r x r core. Throws Error(Diverged) naming `layer` when an entry
// is not finite.
ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q, const std::string& layer);

// Transforms that keep `kept` values (of each block), at most r, fp32: A = P * a (a is r x kept)
// and B = b * Q (b is kept x r), with A = U sqrt(S), B = sqrt(S) V^T.
LowRankPair transforms_from(const ProductSvd& svd, std::int64_t kept);

}  // namespace abtrain::linalg
