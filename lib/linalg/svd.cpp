#include "linalg/svd.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "linalg/gram.h"
#include "linalg/svd_state.h"
#include "linalg/tridiagonal.h"

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

std::vector<double> roots(std::vector<double> squares, double scale) {
  const double smallest = kResolved * kResolved * squares.front();
  for (double& value : squares) {
    value = value > smallest ? std::sqrt(value) / scale : 0;
  }
  return squares;
}

at::Tensor to_tensor(const std::vector<double>& values) {
  auto result = at::empty({std::ssize(values)}, at::kDouble);
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<double>());
  return result;
}

// right: n x k, with arbitrary signs.
LowRankPair make_factors(
    const at::Tensor& matrix,
    const at::Tensor& values,
    const at::Tensor& right) {
  const auto signs = fixed_signs(right);
  const auto root = values.sqrt().to(right.device()).mul(signs);
  const auto inverse = at::where(root.ne(0), root.reciprocal(), 0.0);
  const auto w = matrix.detach().to(at::kFloat);
  // One after the other, so that only one float64 copy of `right` is there.
  LowRankPair pair;
  pair.a = at::mm(w, right.mul(inverse).to(at::kFloat));
  pair.b = right.mul(root).t().to(at::kFloat).contiguous();
  return pair;
}

}  // namespace

void Decomposition::State::solve(const at::Tensor& matrix) {
  if (matrix.is_cuda()) {
    // The vectors are not computed until they are asked for: a layer that stays
    // dense needs none, and they take most of the time.
    gram = matrix;
    at::Tensor ascending;
    try {
      ascending = at::linalg_eigvalsh(gram);
    } catch (const c10::LinAlgError&) {
      const SymmetricEigen found = eigh(gram, layer);
      ascending = found.values;
      vectors = found.vectors.flip(1);
      gram.reset();
    }
    const auto host = ascending.flip(0).cpu();
    const double* first = host.const_data_ptr<double>();
    eigenvalues.assign(first, first + host.numel());
  } else {
    tridiagonal = tridiagonalize(matrix, n);
    eigenvalues = linalg::eigenvalues(tridiagonal);
  }
  set_values();
}

at::Tensor Decomposition::State::first_vectors(std::int64_t k) {
  ABT_ASSERT(
      k >= 1 && k <= std::ssize(values),
      "expected 1 to {} singular vectors, got {}",
      values.size(),
      k);
  if (finder) {
    return finder->right(k);
  }
  if (gram.defined()) {
    vectors = eigh(gram, layer).vectors.flip(1);
    gram.reset();
  }
  return vectors.defined() ? vectors.slice(1, 0, k)
                           : eigenvectors(tridiagonal, eigenvalues, k);
}

void Decomposition::State::set_values() {
  values = roots(eigenvalues, scale);
}

Decomposition::Decomposition(const at::Tensor& matrix, const std::string& layer)
    : state_(std::make_unique<State>()) {
  const Gram gram = gram_of(matrix, layer);
  state_->layer = layer;
  state_->n = matrix.size(1);
  state_->scale = gram.scale;
  state_->solve(gram.matrix);
}

Decomposition::Decomposition(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

Decomposition Decomposition::of_gram(
    std::string layer,
    std::vector<double> eigenvalues,
    at::Tensor vectors,
    double scale) {
  auto state = std::make_unique<State>();
  state->layer = std::move(layer);
  state->n = std::ssize(eigenvalues);
  state->scale = scale;
  state->eigenvalues = std::move(eigenvalues);
  state->vectors = std::move(vectors);
  state->set_values();
  return Decomposition(std::move(state));
}

Decomposition::~Decomposition() = default;
Decomposition::Decomposition(Decomposition&&) noexcept = default;
Decomposition& Decomposition::operator=(Decomposition&&) noexcept = default;

const std::vector<double>& Decomposition::singular_values() const {
  return state_->values;
}

bool Decomposition::is_whole() const {
  return std::ssize(state_->values) == state_->n;
}

Spectrum Decomposition::spectrum(std::int64_t m) const {
  return {
      state_->layer,
      m,
      state_->n,
      state_->values,
      state_->rest_energy,
      state_->rest_bound};
}

at::Tensor Decomposition::right(std::int64_t k) const {
  const auto vectors = state_->first_vectors(k);
  return vectors.mul(fixed_signs(vectors));
}

LowRankPair Decomposition::factors(const at::Tensor& matrix, std::int64_t rank)
    const {
  return make_factors(
      matrix,
      to_tensor(state_->values).slice(0, 0, rank),
      state_->first_vectors(rank));
}

std::vector<int> balance(const std::vector<double>& costs, int workers) {
  ABT_ASSERT(workers >= 1, "expected at least one worker, got {}", workers);
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto left, auto right) {
    return costs[left] > costs[right];
  });
  std::vector<double> load(workers, 0);
  std::vector<int> owner(costs.size(), 0);
  for (const auto item : order) {
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
