// Thin singular value decomposition W = U diag(S) V^T of an m x n matrix, m >= n. In a k x k grid,
// each block is decomposed by itself.
//
// Computes the float64 Gram matrix of the short side, its eigenvalues, the kept eigenvectors, then
// the long factor by GEMM. Singular values are accurate to 1e-6 of the largest; values below 1e-7
// of the largest are not resolved and count as zero. For the same matrix, all runs with the same
// number of threads on the same CPU give bit-identical results. docs/linalg.md lists all routes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "linalg/lapack.h"
#include "linalg/tridiagonal.h"

namespace abtrain::linalg {

// W ~= A * B with A = U sqrt(S) (m x r) and B = sqrt(S) V^T (r x n), fp32. In a grid each block has
// its own factors, of rank s = r / k: A k x k x m/k x s, B k x k x s x n/k (linalg/grid.h).
struct LowRankPair {
  at::Tensor a;
  at::Tensor b;
};

// Returns the values of a Spectrum from the singular values, float64, of a matrix (n) or of all
// blocks of a grid (k x k x n/k).
std::vector<double> spectrum_of(const at::Tensor& singular_values);

// A decomposition that computes only what is kept: all singular values, and as
// many singular vectors as a rank rule asks for.
class Decomposition {
 public:
  // matrix: m x n with m >= n >= 1, or a grid k x k x m/k x n/k, any float
  // dtype, any strides, CPU or CUDA; no reference to it is kept. Throws
  // Error(Diverged) naming `layer` when an entry is not finite.
  Decomposition(const at::Tensor& matrix, const std::string& layer);

  // The n (in a grid n / k) singular values, as in a Spectrum: descending, >= 0, and 0 if below
  // 1e-7 of the largest (in a grid, of the block's largest).
  const std::vector<double>& singular_values() const {
    return values_;
  }
  // Returns n x i: the first i right singular vectors of a matrix without a grid as columns,
  // float64, on the matrix's device. The largest entry of each is positive.
  at::Tensor right(std::int64_t i) const;
  // Returns the factors of the same matrix, on its device: A = W V_i / sqrt(S_i), B = sqrt(S_i)
  // V_i^T. Each block keeps `kept` values, at least one. A singular value of zero gives a zero
  // column in A and a zero row in B.
  LowRankPair factors(const at::Tensor& matrix, std::int64_t kept) const;

 private:
  // On the CPU a matrix or a block of a grid; on a GPU a matrix or all blocks.
  struct Part {
    at::Tensor values;  // (k x k x) n singular values, float64 on the CPU
    // The singular vectors: on the CPU they are computed from `tridiagonal` and `eigenvalues`, on a
    // GPU `vectors` holds them.
    Tridiagonal tridiagonal;          // CPU
    std::vector<double> eigenvalues;  // of `tridiagonal`, descending
    at::Tensor vectors;               // GPU: all of them, columns in order
  };
  static Part decomposed(const at::Tensor& matrix, const std::string& layer);
  // Returns (k x k x) n x i right singular vectors with arbitrary signs.
  static at::Tensor first_vectors(const Part& part, std::int64_t i);
  static LowRankPair factors_of(const Part& part, const at::Tensor& matrix, std::int64_t kept);

  std::vector<Part> parts_;
  std::vector<double> values_;
};

// Assigns items of the given costs to `workers` so that the largest load is
// small (most expensive first, to the least loaded). Returns the worker of each
// item. Deterministic: the same on every worker.
std::vector<int> balance(const std::vector<double>& costs, int workers);

// The cost of decomposing an m x n matrix in a grid of `grid` blocks per side, in flops (for
// balance()).
double decomposition_cost(std::int64_t m, std::int64_t n, std::int64_t grid = 1);

}  // namespace abtrain::linalg
