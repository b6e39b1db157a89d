#include "weights/stored_weight.h"

#include "base/text.h"

namespace abtrain::weights {

StoredWeight::StoredWeight(
    const nn::Model& model, const std::string& name, const nn::Weight& weight, bool flat)
    : weight_(weight), flat_(flat), transposed_(model.file_form().is_transposed(name)) {}

std::vector<std::int64_t> StoredWeight::sizes() const {
  if (transposed_) {
    return {weight_.in_features(), weight_.out_features()};
  }
  return flat_ ? std::vector<std::int64_t>{weight_.out_features(), weight_.in_features()}
               : weight_.sizes();
}

at::Tensor StoredWeight::to_file(const at::Tensor& dense) const {
  if (transposed_) {
    return dense.t();
  }
  return flat_ ? dense.contiguous().flatten(1) : dense;
}

at::Tensor StoredWeight::from_file(const at::Tensor& stored) const {
  return transposed_ ? stored.t().contiguous() : stored.view(weight_.sizes());
}

linalg::LowRankPair StoredWeight::in_file(const linalg::LowRankPair& pair) const {
  return transposed_ && weight_.m() == weight_.n() ? linalg::LowRankPair{pair.b.t(), pair.a.t()}
                                                   : pair;
}

}  // namespace abtrain::weights
