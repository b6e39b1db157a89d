#include "methods/ab/basis_change.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace abtrain::methods {

namespace {

// Returns x / squares in each block, where `squares` are the squared norms of a new factor's rows
// or columns; 0 if such a norm is 0 within rounding, because the factor lacks that direction.
at::Tensor over_squares(const at::Tensor& x, const at::Tensor& squares) {
  const at::Tensor least = squares.amax({-2, -1}, true) * 1e-7;
  return at::where(squares > least, x / squares, at::zeros_like(x));
}

// M, old_rank x new_rank (of each block).
at::Tensor map_of_a(const AbLayer& layer) {
  // In SyncMode::Full, product.b is B0 on top of dB / 2 (merge_factors()): take B0, which dA
  // multiplies.
  const at::Tensor before = layer.product.b.narrow(-2, 0, layer.old_rank / layer.grid());
  const at::Tensor after = layer.factors.b;  // new_rank x n
  return over_squares(at::matmul(before, after.mT()), after.square().sum(-1).unsqueeze(-2));
}

// C, new_rank x old_rank (of each block).
at::Tensor map_of_b(const AbLayer& layer) {
  // In SyncMode::Full, product.a is A0 + dA / 2 beside A0: take A0, which multiplies dB.
  const std::int64_t old_rank = layer.old_rank / layer.grid();
  const at::Tensor before =
      layer.product.a.narrow(-1, layer.product.a.size(-1) - old_rank, old_rank);
  const at::Tensor after = layer.factors.a;  // m x new_rank
  return over_squares(at::matmul(after.mT(), before), after.square().sum(-2).unsqueeze(-1));
}

}  // namespace

at::Tensor carry_changes(
    const at::Tensor& flat, nn::Factor which, const std::vector<AbLayer>& layers) {
  const std::int64_t numel =
      factor_numel(layers, which, [](const AbLayer& layer) { return layer.cut.rank; });
  at::Tensor result = at::zeros({numel}, flat.options());
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (const AbLayer& layer : layers) {
    const nn::Weight& w = layer.weight();
    if (layer.old_rank > 0 && layer.cut.rank > 0) {
      const at::Tensor old = layer.matrix_at(flat, from, which, layer.old_rank);
      const at::Tensor changed = which == nn::Factor::A ? at::matmul(old, map_of_a(layer))
                                                        : at::matmul(map_of_b(layer), old);
      nn::view_at(result, to, w.stored_sizes(which, layer.cut.rank))
          .copy_(w.to_stored(which, changed));
    }
    from += w.factor_numel(which, layer.old_rank);
    to += w.factor_numel(which, layer.cut.rank);
  }
  return result;
}

at::Tensor carry_gradient(
    const at::Tensor& matrix, nn::Factor which, const AbLayer& layer, bool squared) {
  const bool is_a = which == nn::Factor::A;
  const bool was_dense = layer.old_rank == 0;
  const at::Tensor map = is_a ? (was_dense ? layer.factors.b : map_of_b(layer)).mT()
                              : (was_dense ? layer.factors.a : map_of_a(layer)).mT();
  const at::Tensor applied = squared ? map.square() : map;
  return is_a ? at::matmul(matrix, applied) : at::matmul(applied, matrix);
}

}  // namespace abtrain::methods
