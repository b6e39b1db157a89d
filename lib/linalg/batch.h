// Several layers at once. On a GPU layers of one short side share a call of the
// library and all wait together; on the CPU threads take whole matrices. Large
// layers go by the partial route, where a rank rule allows it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linalg/rank_rule.h"
#include "linalg/svd.h"

namespace abtrain::linalg {

class ExactDrivers;

struct NamedMatrix {
  at::Tensor matrix;  // m x n, m >= n >= 1
  std::string layer;
  at::Tensor warm;  // next_start() of its last decomposition, or undefined
};

// method.svd: exact everywhere, the range finder everywhere, or by size.
enum class SvdRoute { Auto, Exact, Randomized };

// From this short side on a decomposition may be partial: the exact route's
// eigenproblem grows as n^3, a search that keeps few values as n^2; below, the
// exact route takes a second or two at most.
constexpr std::int64_t kLargeSide = 2048;

// True where a layer's spectrum may be partial.
bool may_be_partial(SvdRoute route, std::int64_t n);

struct BatchOptions {
  // The rule that a partial spectrum must decide; none: all values are wanted.
  std::optional<RankRule> rule;
  SvdRoute route = SvdRoute::Auto;
  int threads = 1;                  // CPU
  ExactDrivers* drivers = nullptr;  // CUDA: must be there
};

// One result a matrix, in order. Throws Error(Diverged) naming the layer where
// an entry is not finite, before any decomposition on a GPU, where all matrices
// are looked at with one read.
std::vector<Decomposition> decompose_all(
    const std::vector<NamedMatrix>& matrices,
    const BatchOptions& options);

}  // namespace abtrain::linalg
