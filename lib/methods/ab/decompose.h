// Splits the weights of a model into low-rank factors. The work is divided among the workers: each
// layer is decomposed by one of them, its owner, and all receive bit-identical factors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/communicator.h"
#include "device/side_stream.h"
#include "linalg/rank_rule.h"
#include "methods/ab/layer.h"
#include "methods/method_options.h"
#include "nn/model.h"

namespace abtrain::methods {

struct CutOptions {
  linalg::RankRule rule;
  bool cut = true;                    // false: every layer keeps min(m, n)
  std::int64_t other_parameters = 0;  // count of those never factored; for the rule budget
};

// The weights that AB-training factors, chosen by `only`, `keep_dense` and `dense_share`. Sets
// their grids. Throws Error(Config) if there are none, or if the requested rank is above min(m, n)
// of each.
std::vector<nn::NamedWeight> factorable_weights(
    const nn::Model& model, const MethodOptions& options);

// Decomposes all layers (at least one), dense weights or products: W = U S V^T, A = U sqrt(S),
// B = sqrt(S) V^T; in a grid, each block by itself. Sets each layer's `factors` and `cut`; the rule
// `energy` keeps at least its first rank. A product A B is not multiplied out: its owner sends two
// transforms, which all workers apply to A and B. The owner of a dense weight sends its factors.
// One all-gather carries all singular values, another all factors and transforms. `add_seconds` is
// called with the time spent on linear algebra. On a GPU all of it runs on a stream beside the
// training stream.
void decompose_layers(
    std::vector<AbLayer>& layers, const CutOptions& options, comm::Communicator& world,
    std::optional<device::SideStream>& stream, const std::function<void(double)>& add_seconds);

}  // namespace abtrain::methods
