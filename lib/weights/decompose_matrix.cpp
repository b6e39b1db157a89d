#include "weights/decompose_matrix.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "linalg/gram.h"
#include "linalg/grid.h"
#include "nn/weight.h"

namespace abtrain::weights {

namespace {

// Returns the root of the sum of squares of values[first] and all later values. The values descend,
// so their squares cannot overflow once they are divided by values[first].
double length_of(const std::vector<double>& values, std::size_t first) {
  if (first >= values.size() || values[first] <= 0) {
    return 0;
  }
  double squares = 0;
  for (std::size_t i = first; i < values.size(); ++i) {
    squares += std::pow(values[i] / values[first], 2);
  }
  return values[first] * std::sqrt(squares);
}

}  // namespace

DecomposedMatrix::DecomposedMatrix(const WeightFiles::Item& item, std::int64_t grid)
    : name_(item.tensor->name), grid_(grid) {
  const at::Tensor rows = item.file->load(*item.tensor).view({item.tensor->sizes[0], -1});
  nn::Weight form(rows.sizes().vec());
  form.set_grid(grid);
  w_ = form.to_matrix(rows);
  spectrum_ = {name_, form.m(), form.n(), {}, grid};
  try {
    decompose();
  } catch (const Error& error) {
    throw Error(
        error.kind(), formatted(
                          "{}: {}; --keep-dense '{}' copies it unchanged", item.file->path(),
                          error.what(), name_));
  }
}

void DecomposedMatrix::decompose() {
  if (w_.scalar_type() != at::kDouble) {
    by_gram_.emplace(w_, name_);
    spectrum_.singular_values = by_gram_->singular_values();
    return;
  }
  const double largest = at::linalg_vector_norm(w_, INFINITY).item<double>();
  linalg::check_finite(largest, name_);
  exponent_ = largest > 0 ? std::ilogb(largest) : 0;
  // Scales in two steps, because for the smallest numbers 2^-exponent_ is not finite.
  const int half = exponent_ / 2;
  exact_ = linalg::gesdd(
      w_ * std::ldexp(1.0, -half) * std::ldexp(1.0, half - exponent_),
      formatted("layer '{}'", name_));
  spectrum_.singular_values = linalg::spectrum_of(exact_->s);
  // Rounding noise counts as zero.
  const double noise = static_cast<double>(w_.size(-2)) * std::numeric_limits<double>::epsilon() *
                       spectrum_.singular_values.front();
  for (double& value : spectrum_.singular_values) {
    value = value > noise ? value : 0;
  }
}

double DecomposedMatrix::norm() const {
  return std::min(
      std::ldexp(length_of(spectrum_.singular_values, 0), exponent_),
      std::numeric_limits<double>::max());
}

linalg::LowRankPair DecomposedMatrix::factors(std::int64_t rank, const std::string& dtype) const {
  linalg::LowRankPair factors;
  if (by_gram_) {
    factors = by_gram_->factors(w_, rank / grid_);
  } else {
    const int half = exponent_ / 2;
    const std::int64_t kept = rank / grid_;
    const at::Tensor root = exact_->s.slice(-1, 0, kept).sqrt().unsqueeze(-2);
    const at::Tensor a = exact_->u.slice(-1, 0, kept) * root;
    const at::Tensor b = (exact_->v.slice(-1, 0, kept) * root).mT();
    factors = {
        (a * std::ldexp(1.0, half)).contiguous(),
        (b * std::ldexp(1.0, exponent_ - half)).contiguous()};
  }
  const at::ScalarType type = state::float_type(dtype).value();
  factors = {factors.a.to(type), factors.b.to(type)};
  const auto is_held = [&](const at::Tensor& factor) {
    return at::isfinite(factor).all().item<bool>() &&
           (spectrum_.singular_values.front() == 0 ||
            factor.count_nonzero().item<std::int64_t>() > 0);
  };
  ABT_CHECK(
      is_held(factors.a) && is_held(factors.b), Diverged,
      "tensor '{}': its factors are beyond what {} can hold; use --keep-dense "
      "or another --dtype",
      name_, dtype);
  return factors;
}

double DecomposedMatrix::error_of(const linalg::LowRankPair& factors) const {
  double squares = 0;
  const std::vector<at::Tensor> blocks = linalg::blocks_of(w_);
  const std::vector<at::Tensor> a = linalg::blocks_of(factors.a);
  const std::vector<at::Tensor> b = linalg::blocks_of(factors.b);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    squares += squares_of(blocks[i], a[i], b[i]);
  }
  const double whole = length_of(spectrum_.singular_values, 0);
  return whole > 0 ? std::sqrt(squares) / whole : 0;
}

// Takes a few rows at a time, in float64.
double DecomposedMatrix::squares_of(
    const at::Tensor& w, const at::Tensor& a, const at::Tensor& b) const {
  constexpr std::int64_t kNumbers = 1 << 16;
  const std::int64_t rows = std::max<std::int64_t>(1, kNumbers / w.size(1));
  const double down = std::ldexp(1.0, -(exponent_ / 2));
  const double rest_down = std::ldexp(1.0, exponent_ / 2 - exponent_);
  const at::Tensor right = b.to(at::kDouble) * rest_down;
  double squares = 0;
  for (std::int64_t i = 0; i < w.size(0); i += rows) {
    const at::Tensor left = a.slice(0, i, i + rows).to(at::kDouble) * down;
    const at::Tensor part = w.slice(0, i, i + rows).to(at::kDouble) * down * rest_down;
    const double length = at::linalg_vector_norm(part - at::mm(left, right)).item<double>();
    squares += length * length;
  }
  return squares;
}

double truncation_error(const linalg::Spectrum& spectrum, std::int64_t rank) {
  const std::vector<double>& values = spectrum.singular_values;
  const double whole = length_of(values, 0);
  const auto kept = static_cast<std::size_t>(rank / spectrum.grid);
  return whole > 0 ? length_of(values, kept) / whole : 0;
}

}  // namespace abtrain::weights
