// A layer of AB-training as a decomposition leaves it.
#pragma once

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

}  // namespace abtrain::methods
