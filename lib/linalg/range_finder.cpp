#include "linalg/range_finder.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "device/tensor_text.h"
#include "linalg/gram.h"
#include "linalg/lapack.h"
#include "linalg/orthonormal_rows.h"

namespace abtrain::linalg {
namespace {

constexpr double kAccuracy = 1e-7;  // relative to the largest singular value
constexpr double kRounding = 1e-13;
constexpr double kSpace = 1.6;  // space over the rank that it resolves

// True for the rules whose rank depends on the singular values.
bool by_values(const RankRule& rule) {
  return kind_of(rule).needs == RankNeeds::Values;
}

// The first `count` values, count x 1.
at::Tensor column(const std::vector<double>& values, std::int64_t count) {
  return at::tensor(at::ArrayRef<double>(values).slice(0, static_cast<std::size_t>(count)))
      .unsqueeze(1);
}

// FNV-1a.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 14695981039346656037u;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return value;
}

}  // namespace

// The best approximation that the space gives: values descending, the rotation
// from its rows to the vectors, the lengths of the residuals G v - value v.
struct RangeFinder::Ritz {
  std::vector<double> values;
  at::Tensor rotation;           // size x size, columns
  std::vector<double> residual;  // squared, cumulative sums
  at::Tensor vectors;            // rows, as many as `residual`
  double rest = 0;               // energy outside the space

  // A bound on the error of value i, from the residuals of the first j vectors
  // and their distance from the values that follow (Mathias 1998), for the best
  // j >= rank.
  double error(std::size_t i, std::size_t rank) const {
    double best = std::sqrt(residual[rank - 1]);
    for (std::size_t j = rank; j < residual.size(); ++j) {
      const double gap = values[i] - values[j];
      if (gap > 0) {
        best = std::min(best, residual[j - 1] / gap);
      }
    }
    return best;
  }
};

RangeFinder::RangeFinder(const at::Tensor& gram, const std::string& layer, const at::Tensor& warm)
    : gram_(gram),
      layer_(layer),
      n_(gram.size(0)),
      block_(std::clamp<std::int64_t>(n_ / 32, 8, 256)),
      limit_(n_ / 2),
      trace_(gram.diagonal().sum().item<double>()),
      cold_(!warm.defined()) {
  start_ = random_rows(block_, n_);
  if (warm.defined()) {
    // It may come from a damaged checkpoint.
    ABT_CHECK(
        warm.dim() == 2 && warm.size(1) == n_ && warm.size(0) == block_, DamagedData,
        "layer '{}': expected a start of {} x {}, got {}", layer, block_, n_, warm.sizes());
    // Mix in a little of every direction, or new ones would be found late.
    constexpr double kNew = 0.05;
    start_ = warm.to(gram_.options()).add(start_, kNew);
  }
}

// Uniform numbers: any start that prefers no direction will do, since what it
// misses is detected.
at::Tensor RangeFinder::random_rows(std::int64_t count, std::int64_t length) const {
  auto rows = at::empty({count, length}, at::kDouble);
  Random random(hash(layer_), RandomPurpose::Sketch, drawn_++);
  double* entry = rows.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < rows.numel(); ++i) {
    entry[i] = random.uniform() - 0.5;
  }
  return rows.to(gram_.device());
}

// Two passes, since a block may lie almost inside the space; three if only
// rounding errors of it are left.
at::Tensor RangeFinder::orthonormalize(at::Tensor rows) const {
  const auto space = space_.slice(0, 0, size_);
  int passes = 2;
  for (int pass = 0; pass < passes; ++pass) {
    if (size_ > 0) {
      const auto before = at::linalg_vector_norm(rows, 2, {1});
      rows = at::addmm(rows, at::mm(rows, space.t()), space, 1, -1);
      if (pass == 0) {
        const auto left = at::linalg_vector_norm(rows, 2, {1});
        const bool any = left.ge(before.mul(1e-10)).all().item<bool>();
        passes = any ? 2 : 3;
      }
    }
    rows = orthonormal_rows(rows);
  }
  return rows;
}

void RangeFinder::append(const at::Tensor& rows) {
  if (!space_.defined()) {
    space_ = at::empty({limit_, n_}, gram_.options());
    product_ = at::empty({limit_, n_}, gram_.options());
  }
  const auto block = orthonormalize(rows);
  const auto end = size_ + block_;
  space_.slice(0, size_, end).copy_(block);
  product_.slice(0, size_, end).copy_(at::mm(block, gram_));
  size_ = end;
}

bool RangeFinder::grow_to(std::int64_t size) {
  bool grown = size_ >= size;
  while (size_ < size && size_ + block_ <= limit_) {
    if (size_ == 0) {
      append(start_);
    } else if (restart_) {
      append(random_rows(block_, n_));
    } else {
      append(product_.slice(0, size_ - block_, size_).clone());
    }
    restart_ = false;
    grown = true;
  }
  return grown;
}

RangeFinder::Ritz RangeFinder::ritz() const {
  const auto space = space_.slice(0, 0, size_);
  const auto projected = at::mm(product_.slice(0, 0, size_), space.t());
  const auto [values, vectors] = eigh(projected.add(projected.t()).mul(0.5), layer_);
  Ritz result;
  result.values = to_host(values.flip(0));
  result.rotation = vectors.flip(1);
  const double captured = std::accumulate(result.values.begin(), result.values.end(), 0.0);
  result.rest = std::max(0.0, trace_ - captured);
  return result;
}

Spectrum RangeFinder::spectrum_of(
    const std::vector<double>& eigenvalues, std::int64_t m, double rest_bound) const {
  Spectrum s{layer_, m, n_, {}};
  double rest = trace_;
  for (const double value : eigenvalues) {
    s.singular_values.push_back(singular_value(value));
    rest -= std::max(value, 0.0);
  }
  s.rest_energy = std::max(0.0, rest);
  s.rest_bound = rest_bound;
  return s;
}

// Proves that at most `rank` eigenvalues of G are above the level; else false.
bool RangeFinder::none_above(double level, const Ritz& ritz, std::int64_t rank) const {
  const auto first = ritz.values.begin();
  const double rest = std::accumulate(first, first + rank, trace_, std::minus<>());
  if (rest + kRounding * trace_ <= level || (rank == 0 && level >= trace_)) {
    return true;  // not even if the rest were one value
  }
  at::Tensor shifted;
  if (rank > 0) {
    const auto v = ritz.vectors.slice(0, 0, rank);
    const auto weights = column(ritz.values, rank).to(v.device());
    shifted = at::addmm(gram_, v.t(), v.mul(weights), -1, 1);
  } else {
    shifted = gram_.neg();
  }
  shifted.diagonal().add_(level);
  const auto failed = std::get<1>(at::linalg_cholesky_ex(shifted));
  return failed.item<int>() == 0;
}

// Publishes one value if factors would save nothing, as the energy alone or a
// rule that needs no values can tell.
bool RangeFinder::publish_dense(const RankRule& rule, std::int64_t m, const Ritz& ritz) {
  const std::vector<double> first = {ritz.values.front()};
  const double level = by_values(rule) ? first[0] * (1 + 10 * kAccuracy) : trace_;
  const Spectrum s = spectrum_of(first, m, std::sqrt(level));
  if (choose_rank(rule, s).rank != 0 || !none_above(level, ritz, 0)) {
    return false;
  }
  proven_ = {
      first, at::mm(ritz.rotation.slice(1, 0, 1).t(), space_.slice(0, 0, size_)), s.rest_energy,
      s.rest_bound};
  return true;
}

bool RangeFinder::publish(
    const RankRule& rule, std::int64_t m, const Ritz& ritz, std::int64_t rank) {
  const auto& values = ritz.values;
  const bool cut = rule.rule == RankRuleName::Sigma;
  // The least wanted value, or the cut: no value above it may be missing.
  double bound = singular_value(values[rank - 1]) * (1 + kAccuracy);
  if (cut) {
    bound = std::min(bound, rule.cut * singular_value(values[0]));
  }
  // Values this small do not count as resolved.
  const double level = std::max(bound * bound, kAccuracy * kAccuracy * values[0]);
  const std::vector<double> kept(values.begin(), values.begin() + rank);
  Spectrum s = spectrum_of(kept, m, cut ? bound : std::sqrt(level));
  const auto choice = choose_rank(rule, s);
  if (!choice.decided || choice.rank != rank || !none_above(level, ritz, rank)) {
    return false;
  }
  proven_ = {kept, ritz.vectors.slice(0, 0, rank), s.rest_energy, s.rest_bound};
  return true;
}

// True if the rank would exceed the limit, by one of two estimates: the least
// rank that the energy allows or, for a cold search, the rank expected from its
// first block. Over random v the mean of v^T f(G) v is the trace of f(G) over
// n, so the block's share of each Ritz vector is a count.
bool RangeFinder::is_hopeless(const RankRule& rule, std::int64_t m, const Ritz& ritz) const {
  if (!by_values(rule)) {
    return false;
  }
  const std::vector<double> first = {ritz.values.front()};
  const auto least = choose_rank(rule, spectrum_of(first, m, std::sqrt(first[0]))).rank;
  if (kSpace * static_cast<double>(least) > static_cast<double>(limit_)) {
    return true;
  }
  const bool cut_rule = rule.rule == RankRuleName::Sigma;
  if (!cold_ || size_ < 3 * block_ || (!cut_rule && rule.rule != RankRuleName::Energy)) {
    return false;
  }
  const auto shares = to_host(ritz.rotation.slice(0, 0, block_)
                                  .square()
                                  .sum(0)
                                  .mul(static_cast<double>(n_) / static_cast<double>(block_)));
  const double cut = rule.cut * rule.cut * first[0];
  double expected = 0;
  double energy = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (cut_rule ? ritz.values[i] <= cut : energy >= rule.keep * trace_) {
      break;
    }
    expected += shares[i];
    energy += shares[i] * ritz.values[i];
  }
  return kSpace * expected > static_cast<double>(limit_);
}

bool RangeFinder::capture(const RankRule& rule, std::int64_t m) {
  ABT_ASSERT(!is_global(rule), "a budget spans all layers");
  auto target = std::max(size_, 4 * block_);
  if (!by_values(rule)) {
    const auto fixed = choose_rank(rule, spectrum_of({trace_}, m, std::sqrt(trace_))).rank;
    if (kSpace * static_cast<double>(fixed) > static_cast<double>(limit_)) {
      return false;
    }
    target = std::max(target, 2 * fixed + block_);
  }
  double before = 0;  // the error in the previous round
  for (std::int64_t size = 0;; target = size + std::max(size / 2, block_)) {
    if (!grow_to(target)) {
      return false;
    }
    const double step = static_cast<double>(size_ - size);
    size = size_;
    Ritz now = ritz();
    if (publish_dense(rule, m, now)) {
      return true;
    }
    // Chooses as if everything outside the space were below its smallest value.
    const auto choice =
        choose_rank(rule, spectrum_of(now.values, m, singular_value(now.values.back())));
    const auto rank = choice.rank;
    if (!choice.decided || rank == 0 || rank >= size) {
      if (is_hopeless(rule, m, now)) {
        return false;
      }
      continue;
    }
    const auto watched = std::min(size, rank + std::max<std::int64_t>(rank, 16));
    const auto rotation = now.rotation.slice(1, 0, watched).t();
    now.vectors = at::mm(rotation, space_.slice(0, 0, size));
    auto residual = at::mm(rotation, product_.slice(0, 0, size));
    const auto scale = column(now.values, watched).to(gram_.device());
    residual.sub_(now.vectors.mul(scale));
    now.residual = to_host(residual.square().sum(1).cumsum(0));

    const double first = now.values[0];
    const double allowed = std::max(
        2 * kAccuracy * singular_value(now.values[rank - 1]) * std::sqrt(first), kRounding * first);
    const double error = now.error(rank - 1, rank);
    const bool exact = !kind_of(rule).by_largest || now.error(0, rank) <= 10 * kRounding * first;
    if (error <= allowed && exact) {
      if (publish(rule, m, now, rank)) {
        return true;
      }
      restart_ = true;  // a multiple value may need more vectors
      continue;
    }
    if (is_hopeless(rule, m, now)) {
      return false;
    }
    // Errors fall faster and faster, so give up only if even three times the
    // current rate is too slow.
    if (before > 0 && size > 2 * rank && error > 0) {
      const double rate = std::log(before / error) / step;
      const double left = static_cast<double>(limit_ - size);
      if (std::log(error / allowed) > 3 * std::max(rate, 0.0) * left) {
        return false;
      }
    }
    before = error;
  }
}

at::Tensor RangeFinder::next_start() const {
  const at::Tensor& vectors = proven_.vectors;
  return at::mm(random_rows(block_, vectors.size(0)), vectors).to(at::kFloat);
}

}  // namespace abtrain::linalg
