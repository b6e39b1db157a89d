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
  const at::Tensor kept = values > values.narrow(-1, values.size(-1) - 1, 1) * 1e-12;
  const at::Tensor zero = at::zeros_like(values);
  const at::Tensor root = at::where(kept, values, zero).sqrt();
  const at::Tensor inverse = at::where(kept, values, zero + 1).rsqrt() * kept;
  return {root.unsqueeze(-1) * vectors.mT(), vectors * inverse.unsqueeze(-2)};
}

}  // namespace

ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q, const std::string& layer) {
  const at::NoGradGuard no_grad;
  const at::Tensor p64 = p.to(at::kDouble);
  const at::Tensor q64 = q.to(at::kDouble);
  const at::Tensor p_gram = at::matmul(p64.mT(), p64);
  const at::Tensor q_gram = at::matmul(q64, q64.mT());
  // The sum of all squares of both factors: finite if all entries are.
  const auto trace = [](const at::Tensor& gram) { return gram.diagonal(0, -2, -1).sum(); };
  const at::Tensor energy = trace(p_gram) + trace(q_gram);
  check_finite(energy.item<double>(), layer);
  const std::string what = formatted("layer '{}'", layer);
  const Roots left = roots_of(p_gram, what);
  const Roots right = roots_of(q_gram, what);
  const ThinSvd core = gesdd(at::matmul(left.root, right.root.mT()), what);
  return {core.s, at::matmul(left.inverse, core.u), at::matmul(core.v.mT(), right.inverse.mT())};
}

LowRankPair transforms_from(const ProductSvd& svd, std::int64_t kept) {
  const at::NoGradGuard no_grad;
  const at::Tensor root = svd.singular_values.narrow(-1, 0, kept).sqrt();
  return {
      (svd.left.narrow(-1, 0, kept) * root.unsqueeze(-2)).to(at::kFloat),
      (root.unsqueeze(-1) * svd.right.narrow(-2, 0, kept)).to(at::kFloat)};
}

}  // namespace abtrain::linalg
