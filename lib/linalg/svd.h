// Thin singular value decomposition W = U diag(S) V^T of m x n, m >= n.
//
// The route: float64 Gram matrix of the short side, its eigenvalues, the
// eigenvectors that are kept, then the long factor by GEMM. Singular values
// come out within 1e-6 of the largest; what is below 1e-7 of the largest is
// not resolved and counts as zero. The same matrix gives the same bits on every
// run with the same number of threads and the same CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace abtrain::linalg {

// W ~= A * B with A = U sqrt(S) (m x r) and B = sqrt(S) V^T (r x n), fp32.
struct LowRankPair {
  at::Tensor a;
  at::Tensor b;
};

// A decomposition that pays only for what is kept: all singular values at
// once, and as many singular vectors as the rank rule then asks for.
// matrix: m x n with m >= n >= 1, any float dtype, any strides, CPU or CUDA;
// not kept. Throws Error(Diverged) naming `layer` when an entry is not finite.
class Decomposition {
 public:
  Decomposition(const at::Tensor& matrix, const std::string& layer);
  ~Decomposition();
  Decomposition(Decomposition&&) noexcept;
  Decomposition& operator=(Decomposition&&) noexcept;

  // n, descending, >= 0; below 1e-7 of the largest they are 0.
  const std::vector<double>& singular_values() const;
  // n x k: the first k right singular vectors as columns, float64, on the
  // matrix's device. The largest entry of each is positive.
  at::Tensor right(std::int64_t k) const;
  // Of the same matrix, on its device: A = W V_r / sqrt(S_r), B = sqrt(S_r)
  // V_r^T, 1 <= rank <= n. A singular value of zero gives a zero column and row.
  LowRankPair factors(const at::Tensor& matrix, std::int64_t rank) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The oracle: LAPACK gesdd through LibTorch in float64.
struct ThinSvd {
  at::Tensor u;  // m x n
  at::Tensor s;  // n
  at::Tensor v;  // n x n, columns
};
ThinSvd gesdd(const at::Tensor& matrix);

// Assigns items of given costs to `workers` so that the largest load is small
// (longest first to the least loaded). Deterministic: the same on every worker.
std::vector<int> balance(const std::vector<double>& costs, int workers);

// Cost of decomposing an m x n matrix by this route, in flops (for balance).
double decomposition_cost(std::int64_t m, std::int64_t n);

}  // namespace abtrain::linalg
