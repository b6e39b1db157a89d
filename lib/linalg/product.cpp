#include "linalg/product.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <map>

#include "base/error.h"
#include "linalg/eigen.h"
#include "linalg/exact_drivers.h"
#include "linalg/gram.h"

namespace abtrain::linalg {

namespace {

// For a Gram matrix G = E L E^T: root = L^(1/2) E^T and its pseudo-inverse E
// L^(-1/2).
struct Roots {
  at::Tensor root;
  at::Tensor inverse;
};

// values: ascending; vectors: columns.
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

struct Grams {
  at::Tensor left;
  at::Tensor right;
};

Grams grams_of(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor p64 = p.to(at::kDouble);
  const at::Tensor q64 = q.to(at::kDouble);
  return {at::matmul(p64.t(), p64), at::matmul(q64, q64.t())};
}

// The sum of all squares of both factors: finite if all entries are.
at::Tensor energy_of(const Grams& grams) {
  return grams.left.diagonal().sum() + grams.right.diagonal().sum();
}

ProductSvd
from_roots(const Roots& left, const Roots& right, const std::string& layer) {
  const ThinSvd core = gesdd(
      at::matmul(left.root, right.root.t()), formatted("layer '{}'", layer));
  return {
      core.s,
      at::matmul(left.inverse, core.u),
      at::matmul(core.v.t(), right.inverse.t())};
}

ProductSvd svd_of(const Grams& grams, const std::string& layer) {
  const auto roots = [&](const at::Tensor& gram) {
    const SymmetricEigen found = eigh(gram, formatted("layer '{}'", layer));
    return roots_from(found.values, found.vectors);
  };
  const Roots left = roots(grams.left);
  return from_roots(left, roots(grams.right), layer);
}

}  // namespace

ProductSvd product_svd(
    const at::Tensor& p,
    const at::Tensor& q,
    const std::string& layer) {
  const at::NoGradGuard no_grad;
  const Grams grams = grams_of(p, q);
  check_finite(energy_of(grams).item<double>(), layer);
  return svd_of(grams, layer);
}

std::vector<ProductSvd> product_svds(
    const std::vector<LowRankPair>& products,
    const std::vector<std::string>& layers,
    ExactDrivers* drivers) {
  const at::NoGradGuard no_grad;
  std::vector<ProductSvd> result(products.size());
  std::map<std::int64_t, std::vector<std::size_t>> of_rank;
  for (std::size_t i = 0; i < products.size(); ++i) {
    if (products[i].a.is_cuda() && products[i].a.size(1) > 0) {
      of_rank[products[i].a.size(1)].push_back(i);
    } else {
      result[i] = product_svd(products[i].a, products[i].b, layers[i]);
    }
  }
  for (const auto& [k, members] : of_rank) {
    ABT_ASSERT(drivers != nullptr, "products on a GPU need drivers");
    std::vector<Grams> pairs;
    std::vector<at::Tensor> grams;
    std::vector<at::Tensor> energies;
    for (const std::size_t i : members) {
      pairs.push_back(grams_of(products[i].a, products[i].b));
      grams.push_back(pairs.back().left);
      grams.push_back(pairs.back().right);
      energies.push_back(energy_of(pairs.back()));
    }
    const at::Tensor sums = at::stack(energies).cpu();
    for (std::size_t j = 0; j < members.size(); ++j) {
      check_finite(sums.const_data_ptr<double>()[j], layers[members[j]]);
    }
    const EigenBatch found = drivers->solver().batched(at::stack(grams));
    const at::Tensor info = found.info.cpu();
    const auto is_right = [&](std::size_t j) {
      return info.const_data_ptr<int>()[j] == 0;
    };
    const auto roots = [&](std::size_t j) {
      const auto at = static_cast<std::int64_t>(j);
      return roots_from(found.values[at], found.vectors[at].t());
    };
    for (std::size_t j = 0; j < members.size(); ++j) {
      result[members[j]] =
          is_right(2 * j) && is_right(2 * j + 1)
              ? from_roots(roots(2 * j), roots(2 * j + 1), layers[members[j]])
              : svd_of(pairs[j], layers[members[j]]);
    }
  }
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
