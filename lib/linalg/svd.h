// Thin singular value decomposition W = U diag(S) V^T of an m x n matrix, m >=
// n.
//
// The exact route: the float64 Gram matrix of the short side, its eigenvalues,
// the eigenvectors that are kept, then the long factor by GEMM. The partial
// route: only the leading eigenvalues of that matrix, as many as a rank rule
// needs (range_finder.h). Singular values are accurate to 1e-6 of the largest;
// what is below 1e-7 of the largest is not resolved and counts as zero. The
// same matrix gives the same bits on every run with the same number of threads
// on the same CPU. docs/linalg.md lists all routes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linalg/lapack.h"
#include "linalg/range_finder.h"
#include "linalg/rank_rule.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {

// W ~= A * B with A = U sqrt(S) (m x r) and B = sqrt(S) V^T (r x n), fp32.
struct LowRankPair {
  at::Tensor a;
  at::Tensor b;
};

// A decomposition that computes only what is kept: all singular values (or, if
// partial, the first few), and as many singular vectors as a rank rule asks
// for. matrix: m x n with m >= n >= 1, any float dtype, any strides, CPU or
// CUDA; no reference to it is kept. Throws Error(Diverged) naming `layer` when
// an entry is not finite.
class Decomposition {
 public:
  Decomposition(const at::Tensor& matrix, const std::string& layer);
  // Only what a local rule needs, or everything if that would cost as much.
  // warm: next_start() of the layer's last decomposition, or undefined.
  static Decomposition partial(
      const at::Tensor& matrix, const std::string& layer, const RankRule& rule,
      const at::Tensor& warm);

  // The n singular values, or those that are known: descending, >= 0, and 0 if
  // below 1e-7 of the largest.
  const std::vector<double>& singular_values() const {
    return values_;
  }
  bool is_whole() const {
    return std::ssize(values_) == n_;
  }
  // The values together with what is known about the others. m: rows of the
  // matrix.
  Spectrum spectrum(std::int64_t m) const;
  // Makes at least `count` values known from now on (if partial; else does
  // nothing).
  void grow(std::int64_t count, std::int64_t m);
  // next_start(): makes the next partial decomposition of this layer cheaper;
  // undefined after an exact one. searched(): the number of columns of the
  // space that was searched, 0 after an exact one.
  at::Tensor next_start() const;
  std::int64_t searched() const;
  // n x k: the first k right singular vectors as columns, float64, on the
  // matrix's device. The largest entry of each is positive.
  at::Tensor right(std::int64_t k) const;
  // The factors of the same matrix, on its device: A = W V_r / sqrt(S_r), B =
  // sqrt(S_r) V_r^T, 1 <= rank <= known values. A singular value of zero gives
  // a zero column in A and a zero row in B.
  LowRankPair factors(const at::Tensor& matrix, std::int64_t rank) const;

 private:
  Decomposition() = default;
  // Each sets the values: solve() by the exact route from a Gram matrix (on the
  // CPU a symmetric_buffer), capture() by the partial route, or by the exact
  // one where the finder gives up, set_values() from the eigenvalues.
  void solve(const at::Tensor& gram);
  void capture(const RankRule& rule, std::int64_t m);
  void set_values();
  // n x k, with arbitrary signs.
  at::Tensor first_vectors(std::int64_t k) const;

  std::string layer_;
  std::int64_t n_ = 0;
  double scale_ = 1;                 // W was multiplied by it
  std::vector<double> eigenvalues_;  // known ones of the Gram matrix, descending
  std::vector<double> values_;
  double rest_energy_ = 0;  // of the unknown values
  double rest_bound_ = 0;
  // One of these supplies the vectors.
  Tridiagonal tridiagonal_;            // all of them, CPU
  at::Tensor vectors_;                 // all of them, CUDA, columns in order
  std::optional<RangeFinder> finder_;  // as many as values
};

// Assigns items of the given costs to `workers` so that the largest load is
// small (most expensive first, to the least loaded). Returns the worker of each
// item. Deterministic: the same on every worker.
std::vector<int> balance(const std::vector<double>& costs, int workers);

// The cost of decomposing an m x n matrix by the exact route, in flops (for
// balance()).
double decomposition_cost(std::int64_t m, std::int64_t n);

}  // namespace abtrain::linalg
