#include "linalg/svd.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/mapped.h"
#include "linalg/gram.h"
#include "linalg/grid.h"
#include "linalg/parallel.h"

namespace abtrain::linalg {
namespace {

// Below this share of the largest, a singular value is rounding noise.
constexpr double kResolved = 1e-7;

// Returns the signs, (k x k x) 1 x i, by which columns are multiplied to make the largest entry of
// each positive. LAPACK leaves the sign of a vector open.
at::Tensor fixed_signs(const at::Tensor& vectors) {
  const auto where = vectors.abs().argmax(-2, /*keepdim=*/true);
  return vectors.gather(-2, where).sign();
}

}  // namespace

std::vector<double> spectrum_of(const at::Tensor& singular_values) {
  return to_host(
      singular_values.dim() == 1 ? singular_values
                                 : singular_values.square().flatten(0, 1).sum(0).sqrt());
}

Decomposition::Decomposition(const at::Tensor& matrix, const std::string& layer) {
  const at::Tensor w = matrix.detach();
  if (w.is_cuda()) {
    parts_.push_back(decomposed(w, layer));
  } else {
    for (const at::Tensor& block : blocks_of(w)) {
      parts_.push_back(decomposed(block, layer));
    }
  }
  const at::Tensor& first = parts_.front().values;
  values_ = spectrum_of(
      parts_.size() == 1 ? first : at::stack(mapped(parts_, &Part::values)).unsqueeze(0));
}

Decomposition::Part Decomposition::decomposed(const at::Tensor& matrix, const std::string& layer) {
  const Gram gram = gram_of(matrix, layer);
  Part part;
  at::Tensor squares;
  if (gram.matrix.is_cuda()) {
    const SymmetricEigen found = eigh(gram.matrix, layer);
    part.vectors = found.vectors.flip(-1);
    squares = found.values.flip(-1).cpu();
  } else {
    part.tridiagonal = tridiagonalize(gram.matrix, matrix.size(1));
    part.eigenvalues = eigenvalues(part.tridiagonal);
    squares = at::tensor(part.eigenvalues, at::kDouble);
  }
  const at::Tensor smallest = kResolved * kResolved * squares.narrow(-1, 0, 1);
  part.values = at::where(squares > smallest, squares.sqrt() / gram.scale, 0.0);
  return part;
}

at::Tensor Decomposition::first_vectors(const Part& part, std::int64_t i) {
  ABT_ASSERT(
      i >= 1 && i <= part.values.size(-1), "expected 1 to {} singular vectors, got {}",
      part.values.size(-1), i);
  return part.vectors.defined() ? part.vectors.narrow(-1, 0, i)
                                : eigenvectors(part.tridiagonal, part.eigenvalues, i);
}

at::Tensor Decomposition::right(std::int64_t i) const {
  const auto vectors = first_vectors(parts_.front(), i);
  return vectors.mul(fixed_signs(vectors));
}

LowRankPair Decomposition::factors_of(
    const Part& part, const at::Tensor& matrix, std::int64_t kept) {
  const at::Tensor vectors = first_vectors(part, kept);
  const auto signs = fixed_signs(vectors);
  const auto values = part.values.narrow(-1, 0, kept).unsqueeze(-2);
  const auto root = values.sqrt().to(vectors.device()).mul(signs);
  const auto inverse = at::where(root.ne(0), root.reciprocal(), 0.0);
  const auto w = matrix.to(at::kFloat);
  // A is computed before B, so that there is only one float64 copy of the vectors at a time.
  LowRankPair pair;
  pair.a = at::matmul(w, vectors.mul(inverse).to(at::kFloat));
  pair.b = vectors.mul(root).mT().to(at::kFloat).contiguous();
  return pair;
}

LowRankPair Decomposition::factors(const at::Tensor& matrix, std::int64_t kept) const {
  const at::Tensor w = matrix.detach();
  if (w.is_cuda() || !is_grid(w)) {
    return factors_of(parts_.front(), w, kept);
  }
  std::vector<LowRankPair> pairs;
  for (const at::Tensor& block : blocks_of(w)) {
    pairs.push_back(factors_of(parts_[pairs.size()], block, kept));
  }
  const auto grid = [&](at::Tensor LowRankPair::*factor) {
    return at::stack(mapped(pairs, factor)).unflatten(0, {w.size(0), w.size(1)});
  };
  return {grid(&LowRankPair::a), grid(&LowRankPair::b)};
}

std::vector<int> balance(const std::vector<double>& costs, int workers) {
  ABT_ASSERT(workers >= 1, "expected at least one worker, got {}", workers);
  std::vector<double> load(workers, 0);
  std::vector<int> owner(costs.size(), 0);
  for (const std::size_t item : most_expensive_first(costs)) {
    const auto least = std::min_element(load.begin(), load.end());
    owner[item] = static_cast<int>(least - load.begin());
    *least += costs[item];
  }
  return owner;
}

double decomposition_cost(std::int64_t m, std::int64_t n, std::int64_t grid) {
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(n);
  // Half of a product (m n^2 flops), then the reduction (4/3 n^3 flops); half of the reduction's
  // flops run at memory speed and count about fourfold. A grid has k^2 blocks with sides of 1 / k.
  return columns * columns * (rows + 3.3 * columns) / static_cast<double>(grid);
}

}  // namespace abtrain::linalg
