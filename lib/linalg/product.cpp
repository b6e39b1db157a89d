#include "linalg/product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <map>

#include "base/error.h"
#include "linalg/eigen.h"
#include "linalg/exact_drivers.h"

namespace abtrain::linalg {

namespace {

// G = E L E^T of a Gram matrix: root = L^(1/2) E^T and its pseudo-inverse
// E L^(-1/2).
struct Roots {
  at::Tensor root;
  at::Tensor inverse;
};

// values ascending, vectors as columns.
Roots roots_from(const at::Tensor& values, const at::Tensor& vectors) {
  if (values.numel() == 0) {
    return {vectors, vectors};
  }
  const at::Tensor kept = values > values[-1] * 1e-12;
  const at::Tensor zero = at::zeros_like(values);
  const at::Tensor root = at::where(kept, values, zero).sqrt();
  const at::Tensor inverse = at::where(kept, values, zero + 1).rsqrt() * kept;
  return {root.unsqueeze(1) * vectors.t(), vectors * inverse};
}

Roots roots_of(const at::Tensor& gram) {
  const auto [values, vectors] = at::linalg_eigh(gram);
  return roots_from(values, vectors);
}

struct Grams {
  at::Tensor left;
  at::Tensor right;
};

Grams grams_of(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor p64 = p.to(at::kDouble);
  const at::Tensor q64 = q.to(at::kDouble);
  return {at::matmul(p64.t(), p64), at::matmul(q64, q64.t())};
}

ProductSvd from_roots(const Roots& left, const Roots& right) {
  const auto [u, s, vh] =
      at::linalg_svd(at::matmul(left.root, right.root.t()), false);
  return {s, at::matmul(left.inverse, u), at::matmul(vh, right.inverse.t())};
}

}  // namespace

ProductSvd product_svd(const at::Tensor& p, const at::Tensor& q) {
  const at::NoGradGuard no_grad;
  const Grams grams = grams_of(p, q);
  const Roots left = roots_of(grams.left);
  return from_roots(left, roots_of(grams.right));
}

std::vector<ProductSvd> product_svds(
    const std::vector<LowRankPair>& products,
    ExactDrivers* drivers) {
  const at::NoGradGuard no_grad;
  std::vector<ProductSvd> result(products.size());
  std::map<std::int64_t, std::vector<std::size_t>> of_rank;
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i].a.is_cuda() && products[i].a.size(1) > 0) {
      of_rank[products[i].a.size(1)].push_back(i);
    } else {
      result[i] = product_svd(products[i].a, products[i].b);
    }
  }
  std::vector<Pending> verdicts;
  for (const auto& [k, members] : of_rank) {
    ABT_ASSERT(drivers != nullptr, "a GPU's products want drivers");
    std::vector<at::Tensor> grams;
    for (const std::size_t i : members) {
      const Grams pair = grams_of(products[i].a, products[i].b);
      grams.push_back(pair.left);
      grams.push_back(pair.right);
    }
    const EigenBatch found = drivers->solver().batched(at::stack(grams));
    const auto roots = [&](std::size_t j) {
      const auto at = static_cast<std::int64_t>(j);
      return roots_from(found.values[at], found.vectors[at].t());
    };
    for (std::size_t j = 0; j < members.size(); ++j) {
      result[members[j]] = from_roots(roots(2 * j), roots(2 * j + 1));
    }
    verdicts.push_back({found.values, found.info, "products of factors"});
  }
  read_back(verdicts);
  return result;
}

ProductTransforms transforms_from(const ProductSvd& svd, std::int64_t rank) {
  const at::NoGradGuard no_grad;
  const at::Tensor root = svd.singular_values.narrow(0, 0, rank).sqrt();
  return {
      (svd.left.narrow(1, 0, rank) * root).to(at::kFloat),
      (root.unsqueeze(1) * svd.right.narrow(0, 0, rank)).to(at::kFloat)};
}

}  // namespace abtrain::linalg
