// Thin singular value decomposition W = U diag(S) V^T of m x n, m >= n.
//
// The route: float64 Gram matrix of the short side, its symmetric
// eigendecomposition, then the long factor by GEMM. Singular values come out
// within 1e-6 of the largest; directions whose singular value is below about
// 1e-7 of the largest are not resolved, and left out of nothing that any rank
// rule keeps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace abtrain::linalg {

// What rank selection needs, before any factor is formed.
struct GramSpectrum {
  at::Tensor singular_values;  // n, float64, descending, >= 0, CPU
  at::Tensor right;            // n x n, columns = right singular vectors V,
                               // in the order of singular_values; float64
};

// matrix: m x n with m >= n, any float dtype, any strides. Throws Error(Diverged)
// naming `layer` when an entry is not finite.
GramSpectrum gram_spectrum(const at::Tensor& matrix, const std::string& layer);

// W ~= A * B with A = U sqrt(S) (m x r) and B = sqrt(S) V^T (r x n), fp32.
struct LowRankPair {
  at::Tensor a;
  at::Tensor b;
};

// From the spectrum: A = W V_r / sqrt(S_r), B = sqrt(S_r) V_r^T. Singular
// values of zero give zero columns and rows.
LowRankPair factors_from(
    const at::Tensor& matrix, const GramSpectrum& spectrum, std::int64_t rank);

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
