#include "weights/stored_weight.h"

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
  const auto turn = [](const at::Tensor& factor) {
    return factor.dim() == 4 ? factor.permute({1, 0, 3, 2}) : factor.t();
  };
  return {turn(pair.b), turn(pair.a)};
}

}  // namespace

linalg::LowRankPair StoredWeight::to_file(const linalg::LowRankPair& pair) const {
  const bool turns = transposed && weight.m() == weight.n();
  return stored_factors(turns ? turned(pair) : pair);
}

linalg::LowRankPair StoredWeight::from_file(const linalg::LowRankPair& stored) const {
  const linalg::LowRankPair pair = pair_of(stored);
  return transposed && weight.m() == weight.n() ? turned(pair) : pair;
}

linalg::LowRankPair stored_factors(const linalg::LowRankPair& pair) {
  if (pair.a.dim() != 4) {
    return pair;
  }
  return {pair.a.transpose(1, 2).flatten(2), pair.b.transpose(0, 1).flatten(1, 2)};
}

linalg::LowRankPair pair_of(const linalg::LowRankPair& stored) {
  if (stored.a.dim() != 3) {
    return stored;
  }
  const std::int64_t grid = stored.a.size(0);
  return {
      stored.a.unflatten(2, {grid, -1}).transpose(1, 2),
      stored.b.unflatten(1, {grid, -1}).transpose(0, 1)};
}

}  // namespace abtrain::weights
