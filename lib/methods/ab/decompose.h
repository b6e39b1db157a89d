// Splits the weights of a model into low-rank factors, the work shared out
// over the workers: each layer is decomposed by one of them, and all receive
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
#include "methods/ab/svd_memory.h"
#include "methods/method.h"
#include "nn/model.h"

namespace abtrain::methods {

// The layers that each worker decomposes, in order.
std::vector<std::vector<std::size_t>> share_out(
    const std::vector<double>& costs,
    int workers);

// A layer's new factors; rank 0 where it stays dense (a, b undefined).
struct LayerFactors {
  std::int64_t rank = 0;
  double energy = 1;
  linalg::ValueSample values;  // before the cut
  linalg::LowRankPair pair;    // A m x r, B r x n, fp32
};

struct DecomposeOptions {
  linalg::RankRule rule;
  bool cut = true;                    // false: every layer keeps min(m, n)
  std::int64_t other_parameters = 0;  // never factored, for the budget rule
  linalg::SvdRoute route = linalg::SvdRoute::Auto;
};

// Throws Error(Config) where there is no layer to factor, or where the rank
// that is asked for is above min(m, n) of all of them.
void check_factorable(
    const std::vector<nn::NamedWeight>& weights,
    const linalg::RankRule& rule);

// Decomposes dense weights (W = U S V^T; A = U sqrt(S), B = sqrt(S) V^T), one
// result a layer, in order. The owner of a layer sends its factors: one
// all-gather of spectra (more for `budget`, where partial spectra turn out to
// be too short), one of all factors. `add_seconds` is told the time spent on
// linear algebra. On a GPU all of it runs beside the training stream.
std::vector<LayerFactors> decompose_dense(
    const std::vector<nn::NamedWeight>& weights,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds);

// Flops of decomposing an m x n product of rank k, by which layers are shared
// out.
double product_cost(std::int64_t m, std::int64_t n, std::int64_t k);

// Decomposes low-rank products P * Q (m x k, k x n; the same bits on every
// worker) without forming them: each worker sends the k x r transforms of its
// layers, and all apply them.
std::vector<LayerFactors> decompose_products(
    const std::vector<nn::NamedWeight>& weights,
    const std::vector<linalg::LowRankPair>& products,
    const DecomposeOptions& options,
    comm::Communicator& world,
    SvdMemory& memory,
    const std::function<void(double)>& add_seconds);

}  // namespace abtrain::methods
