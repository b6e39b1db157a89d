#include "weights/stored_weight.h"

#include "linalg/grid.h"

namespace abtrain::weights {

std::vector<std::int64_t> StoredWeight::sizes() const {
  if (transposed) {
    return {weight.in_features(), weight.out_features()};
  }
  return flat ? std::vector<std::int64_t>{weight.out_features(), weight.in_features()}
              : weight.sizes();
}

at::Tensor StoredWeight::to_file(const at::Tensor& dense) const {
  if (transposed) {
    return dense.t();
  }
  return flat ? dense.contiguous().flatten(1) : dense;
}

at::Tensor StoredWeight::from_file(const at::Tensor& stored) const {
  return transposed ? stored.t().contiguous() : stored.view(weight.sizes());
}

namespace {

linalg::LowRankPair turned(const linalg::LowRankPair& pair) {
  return {linalg::transposed(pair.b), linalg::transposed(pair.a)};
}

}  // namespace

linalg::LowRankPair StoredWeight::to_file(const linalg::LowRankPair& pair) const {
  const bool is_square = weight.m() == weight.n();
  // An adapter's pair is that of the transposed weight, even if A is then the smaller factor.
  const bool is_own = !weight.adapts() || weight.out_features() < weight.in_features();
  const bool turns = (transposed && is_square) != !is_own;
  return stored_factors(turns ? turned(pair) : pair);
}

linalg::LowRankPair StoredWeight::from_file(const linalg::LowRankPair& stored) const {
  const linalg::LowRankPair pair = pair_of(stored);
  return transposed && weight.m() == weight.n() ? turned(pair) : pair;
}

linalg::LowRankPair stored_factors(const linalg::LowRankPair& pair) {
  if (!linalg::is_grid(pair.a)) {
    return pair;
  }
  const std::int64_t grid = pair.a.size(0);
  return {
      linalg::joined(pair.a).unflatten(0, {grid, -1}),
      linalg::in_stacks(pair.b).unflatten(0, {grid, -1})};
}

linalg::LowRankPair pair_of(const linalg::LowRankPair& stored) {
  if (stored.a.dim() != 3) {
    return stored;
  }
  const std::int64_t grid = stored.a.size(0);
  return {
      linalg::in_blocks(stored.a.flatten(0, 1), grid),
      linalg::from_stacks(stored.b.flatten(0, 1), grid)};
}

}  // namespace abtrain::weights
