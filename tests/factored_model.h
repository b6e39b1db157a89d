// Factors weights of a model outside of any method.
#pragma once

#include <ATen/core/grad_mode.h>

#include "linalg/svd.h"
#include "nn/model.h"

namespace abtrain::testing {

// Puts factors in the place of the dense weight, of `rank` in each block of a grid.
inline void factor_weight(const nn::NamedWeight& named, std::int64_t rank, std::int64_t grid = 1) {
  const at::NoGradGuard no_grad;
  nn::Weight& w = *named.weight;
  w.set_grid(grid);
  const linalg::LowRankPair pair =
      linalg::Decomposition(w.matrix(), named.layer).factors(w.matrix(), rank);
  w.set_factors(pair);
}

}  // namespace abtrain::testing
