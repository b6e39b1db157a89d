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

linalg::LowRankPair StoredWeight::in_file(const linalg::LowRankPair& pair) const {
  return transposed && weight.m() == weight.n() ? linalg::LowRankPair{pair.b.t(), pair.a.t()}
                                                : pair;
}

}  // namespace abtrain::weights
