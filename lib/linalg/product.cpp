#include "linalg/product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include "base/error.h"
#include "linalg/gram.h"

namespace abtrain::linalg {
namespace {

// For a Gram matrix G = E L E^T: root = L^(1/2) E^T and its pseudo-inverse E
// L^(-1/2).
struct Roots {
  at::Tensor root;
  at::Tensor inverse;
};

Roots roots_of(const at::Tensor& gram, const std::string& what) {
  const auto [values, vectors] = eigh(gram, what);
  const at::Tensor kept = values > values[-1] * 1e-12;
  const at::Tensor zero = at::zeros_like(values);
  const at::Tensor root = at::where(kept, values, zero).sqrt();
  const at::Tensor inverse = at::where(kept, values, zero + 1).rsqrt() * kept;
  return {root.unsqueeze(1) * vectors.t(), vectors * inverse};
}

}  // namespace

ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q, const std::string& layer) {
  const at::NoGradGuard no_grad;
  const at::Tensor p64 = p.to(at::kDouble);
  const at::Tensor q64 = q.to(at::kDouble);
  const at::Tensor p_gram = at::matmul(p64.t(), p64);
  const at::Tensor q_gram = at::matmul(q64, q64.t());
  // The sum of all squares of both factors: finite if all entries are.
  const at::Tensor energy = p_gram.diagonal().sum() + q_gram.diagonal().sum();
  check_finite(energy.item<double>(), layer);
  const std::string what = formatted("layer '{}'", layer);
  const Roots left = roots_of(p_gram, what);
  const Roots right = roots_of(q_gram, what);
  const ThinSvd core = gesdd(at::matmul(left.root, right.root.t()), what);
  return {core.s, at::matmul(left.inverse, core.u), at::matmul(core.v.t(), right.inverse.t())};
}

LowRankPair transforms_from(const ProductSvd& svd, std::int64_t rank) {
  const at::NoGradGuard no_grad;
  const at::Tensor root = svd.singular_values.narrow(0, 0, rank).sqrt();
  return {
      (svd.left.narrow(1, 0, rank) * root).to(at::kFloat),
      (root.unsqueeze(1) * svd.right.narrow(0, 0, rank)).to(at::kFloat)};
}

}  // namespace abtrain::linalg
