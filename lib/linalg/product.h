// The singular value decomposition of a low-rank product P * Q, without forming
// the product.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linalg/svd.h"

namespace abtrain::linalg {

// P (m x k) * Q (k x n) = U S V^T with U = P * left, V^T = right * Q.
struct ProductSvd {
  at::Tensor singular_values;  // k, float64, descending
  at::Tensor left;             // k x k, float64
  at::Tensor right;            // k x k, float64
};

// By way of the k x k Gram matrices of P and Q in float64 (their eigenvalues
// below 1e-12 of the largest count as zero) and gesdd of the k x k core. Throws
// Error(Diverged) naming `layer` when an entry is not finite.
ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q, const std::string& layer);

// Transforms of rank r <= k, fp32: A = P * a (a is k x r) and B = b * Q (b is r
// x k), with A = U sqrt(S), B = sqrt(S) V^T.
LowRankPair transforms_from(const ProductSvd& svd, std::int64_t rank);

}  // namespace abtrain::linalg
