#include "linalg/product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace abtrain::linalg {

namespace {

// G = E L E^T of a Gram matrix: root = L^(1/2) E^T and its pseudo-inverse
// E L^(-1/2).
struct Roots {
  at::Tensor root;
  at::Tensor inverse;
};

Roots roots_of(const at::Tensor& gram) {
  const auto [values, vectors] = at::linalg_eigh(gram);
  const double largest = values.numel() > 0 ? values[-1].item<double>() : 0.0;
  const at::Tensor kept = values > 1e-12 * largest;
  const at::Tensor zero = at::zeros_like(values);
  const at::Tensor root = at::where(kept, values, zero).sqrt();
  const at::Tensor inverse = at::where(kept, values, zero + 1).rsqrt() * kept;
  return {root.unsqueeze(1) * vectors.t(), vectors * inverse};
}

}  // namespace

ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q) {
  const at::NoGradGuard no_grad;
  const at::Tensor p64 = p.to(at::kDouble);
  const at::Tensor q64 = q.to(at::kDouble);
  const Roots left = roots_of(at::matmul(p64.t(), p64));
  const Roots right = roots_of(at::matmul(q64, q64.t()));
  const auto [u, s, vh] =
      at::linalg_svd(at::matmul(left.root, right.root.t()), false);
  return {s, at::matmul(left.inverse, u), at::matmul(vh, right.inverse.t())};
}

ProductTransforms transforms_from(const ProductSvd& svd, std::int64_t rank) {
  const at::NoGradGuard no_grad;
  const at::Tensor root = svd.singular_values.narrow(0, 0, rank).sqrt();
  return {
      (svd.left.narrow(1, 0, rank) * root).to(at::kFloat),
      (root.unsqueeze(1) * svd.right.narrow(0, 0, rank)).to(at::kFloat)};
}

}  // namespace abtrain::linalg
