// A layer of AB-training as a decomposition leaves it.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_svd.h>

#include "methods/ab/layer.h"

namespace abtrain::methods {

inline AbLayer layer_of(
    nn::Weight& w, std::int64_t old_rank, const linalg::LowRankPair& before,
    const linalg::LowRankPair& after) {
  AbLayer layer({"fc.weight", "fc", &w, {}});
  layer.old_rank = old_rank;
  layer.cut.rank = after.a.size(1);
  layer.product = before;
  layer.factors = after;
  return layer;
}

// A = U sqrt(S), B = sqrt(S) V^T of a matrix, of this rank.
inline linalg::LowRankPair balanced(const at::Tensor& matrix, std::int64_t rank) {
  const auto [u, s, vt] = at::linalg_svd(matrix.to(at::kDouble), false);
  const at::Tensor root = s.narrow(0, 0, rank).sqrt();
  return {
      (u.narrow(1, 0, rank) * root).to(matrix.scalar_type()),
      (root.unsqueeze(1) * vt.narrow(0, 0, rank)).to(matrix.scalar_type())};
}

inline double relative_distance(const at::Tensor& got, const at::Tensor& want) {
  return (got - want).norm().item<double>() / want.norm().item<double>();
}

}  // namespace abtrain::methods
