#include "linalg/svd.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "linalg/gram.h"
#include "linalg/parallel.h"

namespace abtrain::linalg {
namespace {

// Below this share of the largest, a singular value is rounding noise.
constexpr double kResolved = 1e-7;

// LAPACK leaves the sign of a vector open; we make its largest entry positive.
// Returns 1 x k: what to multiply the columns by.
at::Tensor fixed_signs(const at::Tensor& vectors) {
  const auto where = vectors.abs().argmax(0, /*keepdim=*/true);
  return vectors.gather(0, where).sign();
}

}  // namespace

Decomposition::Decomposition(const at::Tensor& matrix, const std::string& layer)
    : layer_(layer), n_(matrix.size(1)) {
  const Gram gram = gram_of(matrix, layer);
  scale_ = gram.scale;
  solve(gram.matrix);
}

Decomposition Decomposition::partial(
    const at::Tensor& matrix, const std::string& layer, const RankRule& rule,
    const at::Tensor& warm) {
  const Gram gram = whole_gram_of(matrix, layer);
  if (gram.matrix.diagonal().max().item<double>() <= 0) {
    return Decomposition(matrix, layer);
  }
  Decomposition result;
  result.layer_ = layer;
  result.n_ = matrix.size(1);
  result.scale_ = gram.scale;
  result.finder_.emplace(gram.matrix, layer, warm);
  result.capture(rule, matrix.size(0));
  return result;
}

void Decomposition::solve(const at::Tensor& gram) {
  if (gram.is_cuda()) {
    const SymmetricEigen found = eigh(gram, layer_);
    vectors_ = found.vectors.flip(1);
    eigenvalues_ = to_host(found.values.flip(0));
  } else {
    tridiagonal_ = tridiagonalize(gram, n_);
    eigenvalues_ = linalg::eigenvalues(tridiagonal_);
  }
  set_values();
}

void Decomposition::capture(const RankRule& rule, std::int64_t m) {
  if (finder_->capture(rule, m)) {
    const RangeFinder::Proven& proven = finder_->proven();
    eigenvalues_ = proven.eigenvalues;
    rest_energy_ = proven.rest_energy / scale_ / scale_;
    rest_bound_ = proven.rest_bound / scale_;
    set_values();
    return;
  }
  at::Tensor gram = finder_->gram();
  finder_.reset();
  rest_energy_ = rest_bound_ = 0;
  if (!gram.is_cuda()) {
    auto buffer = symmetric_buffer(n_);
    buffer.slice(0, 0, n_).slice(1, 0, n_).copy_(gram);
    gram = std::move(buffer);
  }
  solve(gram);
}

void Decomposition::set_values() {
  const double smallest = kResolved * kResolved * eigenvalues_.front();
  values_.clear();
  for (const double square : eigenvalues_) {
    values_.push_back(square > smallest ? std::sqrt(square) / scale_ : 0);
  }
}

void Decomposition::grow(std::int64_t count, std::int64_t m) {
  if (!finder_ || count <= std::ssize(values_)) {
    return;
  }
  // A rank too large to save anything is never chosen.
  RankRule rule;
  rule.rule = RankRuleName::Fixed;
  rule.rank = std::min(count, largest_saving_rank(spectrum(m)));
  capture(rule, m);
}

Spectrum Decomposition::spectrum(std::int64_t m) const {
  return {layer_, m, n_, values_, rest_energy_, rest_bound_};
}

at::Tensor Decomposition::next_start() const {
  return finder_ ? finder_->next_start() : at::Tensor();
}

std::int64_t Decomposition::searched() const {
  return finder_ ? finder_->basis_size() : 0;
}

at::Tensor Decomposition::first_vectors(std::int64_t k) const {
  ABT_ASSERT(
      k >= 1 && k <= std::ssize(values_), "expected 1 to {} singular vectors, got {}",
      values_.size(), k);
  if (finder_) {
    return finder_->proven().vectors.slice(0, 0, k).t();
  }
  return vectors_.defined() ? vectors_.slice(1, 0, k) : eigenvectors(tridiagonal_, eigenvalues_, k);
}

at::Tensor Decomposition::right(std::int64_t k) const {
  const auto vectors = first_vectors(k);
  return vectors.mul(fixed_signs(vectors));
}

LowRankPair Decomposition::factors(const at::Tensor& matrix, std::int64_t rank) const {
  const at::Tensor vectors = first_vectors(rank);
  const auto signs = fixed_signs(vectors);
  const auto values = at::tensor(values_).slice(0, 0, rank);
  const auto root = values.sqrt().to(vectors.device()).mul(signs);
  const auto inverse = at::where(root.ne(0), root.reciprocal(), 0.0);
  const auto w = matrix.detach().to(at::kFloat);
  // One after the other, so that only one float64 copy of the vectors is there.
  LowRankPair pair;
  pair.a = at::mm(w, vectors.mul(inverse).to(at::kFloat));
  pair.b = vectors.mul(root).t().to(at::kFloat).contiguous();
  return pair;
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

double decomposition_cost(std::int64_t m, std::int64_t n) {
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(n);
  // Half of a product, then the reduction: 4/3 n^3 flops, half of which run at
  // memory speed and count about fourfold.
  return columns * columns * (rows + 3.3 * columns);
}

}  // namespace abtrain::linalg
