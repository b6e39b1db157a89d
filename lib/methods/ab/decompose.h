// Splits the weights of a model into low-rank factors. The work is divided
// among the workers: each layer is decomposed by one of them, and all receive
// the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "linalg/batch.h"
#include "linalg/product.h"
#include "linalg/rank_rule.h"
#include "linalg/svd.h"
#include "linalg/value_sample.h"
#include "methods/ab/gather_layers.h"
#include "methods/ab/svd_memory.h"
#include "methods/method.h"
#include "nn/model.h"

namespace abtrain::methods {

// What a layer's new factors are made from: its dense weight, or the product A
// B (m x k, k x n; the same bits on every worker) of merged factors.
struct Source {
  nn::NamedWeight weight;
  linalg::LowRankPair product;  // undefined: the weight is dense
  std::int64_t least_rank = 0;  // RankRule::least of this layer

  bool is_product() const {
    return product.a.defined();
  }
  SourceShape shape() const;
};

// A layer's new factors; rank 0 if it stays dense (then a and b are undefined).
struct LayerFactors {
  std::int64_t rank = 0;
  double energy = 1;
  linalg::ValueSample values;  // singular values before the cut
  linalg::LowRankPair pair;    // A m x r, B r x n, fp32
};

struct DecomposeOptions {
  linalg::RankRule rule;
  bool cut = true;                    // false: every layer keeps min(m, n)
  std::int64_t other_parameters = 0;  // never factored; for the budget rule
  linalg::SvdRoute route = linalg::SvdRoute::Auto;
};

// The weights that AB-training factors, all but those that `keep_dense` and
// `dense_share` leave dense. Throws Error(Config) if there are none, or if the
// requested rank is above min(m, n) of each.
std::vector<nn::NamedWeight> factorable_weights(
    const nn::Model& model,
    const MethodOptions& options);

// Decomposes all sources, at least one (W = U S V^T; A = U sqrt(S), B = sqrt(S)
// V^T), and returns one result per source, in order. Products are not formed:
// the owner of a layer sends its factors, or the two k x r transforms of its
// product, which all workers apply. One all-gather carries the spectra (more
// than one for `budget`, if partial spectra turn out to be too short), and one
// carries all factors. `add_seconds` is called with the time spent on linear
// algebra. On a GPU all of it runs on a stream beside the training stream.
std::vector<LayerFactors> decompose_layers(
    const std::vector<Source>& sources,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds);

}  // namespace abtrain::methods
