#include "linalg/tridiagonal.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "linalg/orthonormal_rows.h"

namespace abtrain::linalg {
namespace {

constexpr auto kGroup = kReflectorGroup;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// The largest sum of a row's magnitudes without the coupling to the row before
// it: about the norm of T.
double norm_of(const Tridiagonal& t) {
  double norm = 0;
  for (std::int64_t i = 0; i < t.n; ++i) {
    const double coupling = i + 1 < t.n ? std::abs(t.off[i]) : 0;
    norm = std::max(norm, std::abs(t.diagonal[i]) + coupling);
  }
  return norm;
}

// One QL sweep over rows first .. last, with Wilkinson's shift. Like the inner loop of LAPACK's
// dsterf, but written so that a row waits for one division only. T must have a norm of about one.
void ql_sweep(
    std::vector<double>& d, std::vector<double>& e2, std::int64_t first, std::int64_t last) {
  const double root = std::sqrt(e2[first]);
  const double slope = (d[first + 1] - d[first]) / (2 * root);
  const double shift = d[first] - root / (slope + std::copysign(std::hypot(slope, 1.0), slope));
  double c = 1;
  double s = 0;
  double gamma = d[last] - shift;
  double p = gamma * gamma;
  for (auto i = last; i-- > first;) {
    const double b = e2[i];
    const double r = p + b;
    if (i + 1 < last) {
      e2[i + 1] = s * r;
    }
    const double previous = gamma;
    if (p > 1e-140) {
      const double inverse = 1 / (p * r);
      const double scaled = p * (d[i] - shift) - b * previous;
      gamma = scaled * (p * inverse);
      c = p * (p * inverse);
      s = b * (p * inverse);
      p = scaled * scaled * inverse;
    } else {
      gamma = -previous;
      p = c * b;
      c = 0;
      s = 1;
    }
    d[i + 1] = previous + (d[i] - gamma);
  }
  e2[first] = s * p;
  d[first] = shift + gamma;
}

// Eigenvectors of T from its eigenvalues: two solves with T - value from a
// random start, by Gaussian elimination with row exchanges.
class InverseIteration {
 public:
  explicit InverseIteration(const Tridiagonal& t)
      : t_(t),
        inverse_(t.n),
        first_(t.n),
        second_(t.n),
        factor_(t.n),
        exchanged_(t.n),
        smallest_(std::max(norm_of(t) * kEpsilon, 1e-300)) {}

  // Writes the first solution to x, n entries of norm one. Each index has its own random start, so
  // that equal eigenvalues give independent vectors.
  void start(double value, std::int64_t index, double* x) {
    factorize(value);
    Random random(0, RandomPurpose::Initialize, static_cast<std::uint32_t>(index));
    for (std::int64_t i = 0; i < t_.n; ++i) {
      x[i] = random.uniform() - 0.5;
    }
    back(x);
  }

  // Solves once more with x as the right side, for the value of the last start().
  void refine(double* x) const {
    forward(x);
    back(x);
  }

  // About the norm of T times the machine precision.
  double smallest() const {
    return smallest_;
  }

 private:
  // Without branches, because it cannot be predicted which of two rows has the pivot.
  void factorize(double value) {
    double pivot = t_.diagonal[0] - value;
    double beside = t_.n > 1 ? t_.off[0] : 0;
    for (std::int64_t i = 0; i + 1 < t_.n; ++i) {
      const double below = t_.off[i];
      const double diagonal = t_.diagonal[i + 1] - value;
      const double next = i + 2 < t_.n ? t_.off[i + 1] : 0;
      const bool exchange = std::abs(below) > std::abs(pivot);
      exchanged_[i] = exchange;
      inverse_[i] = 1 / guard(exchange ? below : pivot);
      factor_[i] = (exchange ? pivot : below) * inverse_[i];
      first_[i] = exchange ? diagonal : beside;
      second_[i] = exchange ? next : 0;
      pivot = (exchange ? beside : diagonal) - factor_[i] * first_[i];
      beside = (exchange ? 0 : next) - factor_[i] * second_[i];
    }
    inverse_[t_.n - 1] = 1 / guard(pivot);
    first_[t_.n - 1] = second_[t_.n - 1] = 0;
  }

  double guard(double pivot) const {
    return std::abs(pivot) < smallest_ ? std::copysign(smallest_, pivot) : pivot;
  }

  void forward(double* x) const {
    for (std::int64_t i = 0; i + 1 < t_.n; ++i) {
      const double here = x[i];
      const double below = x[i + 1];
      x[i] = exchanged_[i] ? below : here;
      x[i + 1] = (exchanged_[i] ? here : below) - factor_[i] * x[i];
    }
  }

  // The solution has the norm one.
  void back(double* x) const {
    double next = 0;
    double after = 0;
    for (auto i = t_.n; i-- > 0;) {
      double value = (x[i] - first_[i] * next - second_[i] * after) * inverse_[i];
      if (std::abs(value) > 1e150) {
        // After many small pivots, x is scaled down so that it does not overflow: only its
        // direction matters.
        for (std::int64_t j = 0; j < t_.n; ++j) {
          x[j] *= 1e-150;
        }
        next *= 1e-150;
        value *= 1e-150;
      }
      x[i] = value;
      after = next;
      next = value;
    }
    double largest = 0;
    for (std::int64_t i = 0; i < t_.n; ++i) {
      largest = std::max(largest, std::abs(x[i]));
    }
    double square = 0;
    for (std::int64_t i = 0; i < t_.n; ++i) {
      x[i] /= largest;
      square += x[i] * x[i];
    }
    const double scale = 1 / std::sqrt(square);
    for (std::int64_t i = 0; i < t_.n; ++i) {
      x[i] *= scale;
    }
  }

  const Tridiagonal& t_;
  std::vector<double> inverse_;  // of the pivots
  std::vector<double> first_;    // the two diagonals above them
  std::vector<double> second_;
  std::vector<double> factor_;
  std::vector<char> exchanged_;
  double smallest_;
};

// Computes one vector after another, as LAPACK's dstein does. Before each further solve, and at the
// end, a vector is made orthogonal to the earlier vectors of near eigenvalues: twice, because the
// first pass leaves rounding errors in a vector that it shrinks much. Equal eigenvalues are moved
// apart a little, because a solve would otherwise prefer one direction of their space.
void solve_in_clusters(
    InverseIteration& iteration, const std::vector<double>& values, at::Tensor& rows) {
  const double apart = 10 * iteration.smallest();
  const double near = 1e-3 / kEpsilon * iteration.smallest();
  std::int64_t first = 0;
  double shift = 0;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    if (i == 0 || values[i - 1] - values[i] > near) {
      first = i;
      shift = values[i];
    } else {
      shift = std::min(values[i], shift - apart);
    }
    auto x = rows.select(0, i);
    auto* entries = x.mutable_data_ptr<double>();
    const auto before = rows.slice(0, first, i);
    const auto turn_away = [&] {
      for (int pass = 0; i > first && pass < 2; ++pass) {
        x.sub_(at::mv(before.t(), at::mv(before, x)));
      }
    };
    iteration.start(shift, i, entries);
    for (int pass = 0; pass < 3; ++pass) {
      turn_away();
      iteration.refine(entries);
    }
    turn_away();
    x.div_(at::linalg_vector_norm(x));
  }
}

// Turns each row x into Q x. Reflectors are applied in groups, from the last to
// the first: H_f .. H_l = I - V T V^T, where the inverse of T is the upper half
// of V^T V with 1 / tau on its diagonal.
void reflect(const Tridiagonal& t, at::Tensor& rows) {
  const auto count = t.n - 1;
  for (auto first = (count - 1) / kGroup * kGroup; first >= 0; first -= kGroup) {
    const auto last = std::min(first + kGroup, count);
    const auto v = t.reflectors.slice(0, first, last).slice(1, first, t.n);
    auto inverse = at::mm(v, v.t()).triu(1);
    auto* entry = inverse.mutable_data_ptr<double>();
    for (auto j = first; j < last; ++j, entry += last - first + 1) {
      *entry = 1 / t.tau[j];
    }
    auto x = rows.slice(1, first, t.n);
    const auto z =
        at::linalg_solve_triangular(inverse.t(), at::mm(x, v.t()), /*upper=*/false, /*left=*/false);
    x.addmm_(z, v, 1.0, -1.0);
  }
}

}  // namespace

std::int64_t padded_size(std::int64_t n) {
  return (n + kLine - 1) / kLine * kLine;
}

at::Tensor symmetric_buffer(std::int64_t n) {
  const auto size = padded_size(n);
  // Columns are an odd number of cache lines apart, so that they do not fall on the same lines of
  // the first-level cache.
  return at::zeros({size, size | kLine}, at::kDouble);
}

Tridiagonal tridiagonalize(const at::Tensor& buffer, std::int64_t n, int width) {
  const auto size = padded_size(n);
  const auto stride = buffer.size(1);
  ABT_ASSERT(
      buffer.size(0) == size && buffer.is_contiguous() && buffer.scalar_type() == at::kDouble,
      "expected a symmetric_buffer of {}", n);
  std::vector<double> diagonal(size), off(size), tau(size);
  const auto w = at::zeros({kPanel, stride}, at::kDouble);
  const auto scratch = at::empty({4 * kPanel, size}, at::kDouble);
  for (std::int64_t first = 0; first < size; first += kPanel) {
    reduce_panel(
        {buffer.mutable_data_ptr<double>(), w.mutable_data_ptr<double>(),
         scratch.mutable_data_ptr<double>(), stride, size, first, std::min(first + kPanel, size),
         diagonal.data(), off.data(), tau.data()},
        width);
  }
  diagonal.resize(n);
  off.resize(n - 1);
  tau.resize(n - 1);
  return {n, std::move(diagonal), std::move(off), std::move(tau), buffer};
}

std::vector<double> eigenvalues(const Tridiagonal& t) {
  const double norm = norm_of(t);
  if (norm == 0) {
    return t.diagonal;
  }
  std::vector<double> d;
  std::vector<double> e2;  // squared couplings
  for (const double value : t.diagonal) {
    d.push_back(value / norm);
  }
  for (const double value : t.off) {
    e2.push_back(value / norm * (value / norm));
  }
  auto sweeps_left = 30 * t.n;
  for (std::int64_t first = 0; first < t.n;) {
    auto last = first;
    while (last + 1 < t.n && e2[last] > kEpsilon * kEpsilon) {
      ++last;
    }
    if (last == first) {
      ++first;
      continue;
    }
    ABT_CHECK(sweeps_left-- > 0, Diverged, "QL did not converge within 30 sweeps per eigenvalue");
    ql_sweep(d, e2, first, last);
  }
  for (double& value : d) {
    value *= norm;
  }
  std::sort(d.begin(), d.end(), std::greater<>());
  return d;
}

at::Tensor eigenvectors(const Tridiagonal& t, const std::vector<double>& values, std::int64_t k) {
  auto rows = at::empty({k, t.n}, at::kDouble);
  InverseIteration iteration(t);
  for (std::int64_t i = 0; i < k; ++i) {
    auto* x = rows.mutable_data_ptr<double>() + i * t.n;
    iteration.start(values[i], i, x);
    iteration.refine(x);
  }
  // Cholesky is as accurate as Householder while every pivot is of order one (several small pivots
  // multiply the error: three rows with pivots near 0.1 lose four digits). The vectors of a cluster
  // are independent only by chance, so some of their pivots are small.
  auto basis = by_cholesky(rows, 0.5);
  if (!basis.defined()) {
    solve_in_clusters(iteration, values, rows);
    basis = std::get<0>(at::linalg_qr(rows.t(), "reduced")).t();
  }
  rows = basis.contiguous();
  reflect(t, rows);
  return rows.t();
}

}  // namespace abtrain::linalg
