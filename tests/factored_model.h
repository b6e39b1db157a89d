// Factors weights of a model outside of any method.
#pragma once

#include <ATen/core/grad_mode.h>

#include "linalg/svd.h"
#include "nn/model.h"

namespace abtrain::testing {

// Puts the factors of `rank` in the place of the dense weight.
inline void factor_weight(const nn::NamedWeight& named, std::int64_t rank) {
  const at::NoGradGuard no_grad;
  nn::Weight& w = *named.weight;
  const linalg::LowRankPair pair =
      linalg::Decomposition(w.matrix(), named.layer).factors(w.matrix(), rank);
  w.set_factors(pair);
}

}  // namespace abtrain::testing
