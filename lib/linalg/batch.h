// Decomposes several layers. On the CPU each thread takes whole matrices. Large
// layers take the partial route if a rank rule allows it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linalg/rank_rule.h"
#include "linalg/svd.h"

namespace abtrain::linalg {

struct NamedMatrix {
  at::Tensor matrix;  // m x n, m >= n >= 1
  std::string layer;
  at::Tensor warm;              // next_start() of its last decomposition, or undefined
  std::int64_t least_rank = 0;  // RankRule::least of this layer
};

// method.svd: auto chooses by the layer's short side (kLargeSide), exact and
// randomized apply everywhere.
enum class SvdRoute { Auto, Exact, Randomized };

// From this short side on a decomposition may be partial: the exact route's
// eigenproblem grows as n^3, a search that keeps few values as n^2; below it,
// the exact route takes at most a second or two.
constexpr std::int64_t kLargeSide = 2048;

// True if a layer's spectrum may be partial.
bool may_be_partial(SvdRoute route, std::int64_t n);

struct BatchOptions {
  // The rule that a partial spectrum must decide; none: all values are wanted.
  std::optional<RankRule> rule;
  SvdRoute route = SvdRoute::Auto;
  int threads = 1;  // CUDA takes one
};

// Returns one result per matrix, in order. Throws Error(Diverged) naming the
// layer when an entry is not finite.
std::vector<Decomposition> decompose_all(
    const std::vector<NamedMatrix>& matrices, const BatchOptions& options);

}  // namespace abtrain::linalg
