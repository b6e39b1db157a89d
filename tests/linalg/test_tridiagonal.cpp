#include "linalg/tridiagonal.h"

#include <ATen/ops/linalg_eigvalsh.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "linalg/gram.h"
#include "linalg/matrices.h"

namespace abtrain::linalg {
namespace {

// From a full symmetric matrix, with garbage above the diagonal.
at::Tensor buffer_of(const at::Tensor& full) {
  const auto n = full.size(0);
  auto buffer = symmetric_buffer(n);
  buffer.slice(0, 0, n).slice(1, 0, n).copy_(
      full.t().triu().add(full.new_ones({n, n}).tril(-1), 77.0));
  return buffer;
}

// Symmetric, with these numbers on the diagonal and beside it.
at::Tensor tridiagonal_of(const std::vector<double>& diagonal, const std::vector<double>& off) {
  const auto beside = vector_of(off);
  return vector_of(diagonal).diag().add(beside.diag(1)).add(beside.diag(-1));
}

void expect_eigenpairs(const at::Tensor& full, int width) {
  const auto n = full.size(0);
  const auto t = tridiagonalize(buffer_of(full), n, width);
  const auto values = eigenvalues(t);
  const auto expected = at::linalg_eigvalsh(full).flip(0);
  const double norm = expected.abs().max().item<double>();
  EXPECT_LE(largest_difference(vector_of(values), expected), 1e-14 * n * norm);
  for (const auto k : {std::int64_t{1}, (n + 3) / 4, n}) {
    const auto v = eigenvectors(t, values, k);
    EXPECT_LT(distance_from_orthonormal(v), 1e-12);
    const auto residual = at::mm(full, v).sub(v.mul(vector_of(values).slice(0, 0, k)));
    EXPECT_LE(residual.abs().max().item<double>(), 1e-12 * norm);
  }
}

std::vector<int> widths() {
  std::vector<int> all;
  for (int width = 2; width <= best_width(); width *= 2) {
    all.push_back(width);
  }
  return all;
}

class Widths : public testing::TestWithParam<int> {};

TEST_P(Widths, RandomMatrices) {
  for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 65, 100, 193}) {
    const auto x = noise(n, n);
    SCOPED_TRACE(n);
    expect_eigenpairs(x.add(x.t()), GetParam());
  }
}

TEST_P(Widths, Clusters) {
  for (const std::int64_t n : {5, 70, 130}) {
    const auto identity = noise(n, n).new_ones({n}).diag();
    SCOPED_TRACE(n);
    expect_eigenpairs(identity, GetParam());
    // Half zero, half one, turned.
    const auto q = orthonormal_noise(n, n / 2, 5);
    expect_eigenpairs(at::mm(q, q.t()), GetParam());
    // Already diagonal, with gaps over twelve orders of magnitude.
    std::vector<double> graded;
    for (std::int64_t i = 0; i < n; ++i) {
      graded.push_back(std::pow(10.0, -12.0 * i / n));
    }
    expect_eigenpairs(vector_of(graded).diag(), GetParam());
    expect_eigenpairs(vector_of(graded).flip(0).diag(), GetParam());
    const auto turn = orthonormal_noise(n, n, 6);
    expect_eigenpairs(at::mm(turn.mul(vector_of(graded)), turn.t()), GetParam());
  }
}

// Clusters of three: the start vectors are nearly dependent for some seeds.
TEST_P(Widths, SmallClusters) {
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto q = orthonormal_noise(5, 2, seed);
    expect_eigenpairs(at::mm(q, q.t()), GetParam());
  }
}

// Wilkinson's W21+: pairs of eigenvalues that agree to 14 digits although no
// coupling is small.
TEST_P(Widths, Wilkinson) {
  std::vector<double> diagonal;
  for (int i = 0; i < 21; ++i) {
    diagonal.push_back(std::abs(i - 10));
  }
  expect_eigenpairs(tridiagonal_of(diagonal, std::vector<double>(20, 1)), GetParam());
}

// The second difference: eigenvalues 2 - 2 cos(pi k / (n + 1)).
TEST_P(Widths, ClosedForm) {
  const std::int64_t n = 90;
  const auto w = tridiagonal_of(std::vector<double>(n, 2), std::vector<double>(n - 1, -1));
  const auto values = eigenvalues(tridiagonalize(buffer_of(w), n, GetParam()));
  for (std::int64_t k = 1; k <= n; ++k) {
    EXPECT_NEAR(values[n - k], 2 - 2 * std::cos(M_PI * k / (n + 1.0)), 1e-13);
  }
}

TEST_P(Widths, GramMatrix) {
  for (const auto& [m, n] :
       {MatrixShape{1, 1}, MatrixShape{9, 3}, MatrixShape{256, 40}, MatrixShape{257, 33},
        MatrixShape{700, 129}}) {
    const auto w = noise(m, n);
    const auto exact = at::mm(w.t(), w).tril();
    for (const auto& form : {w, w.t().contiguous().t(), w.to(at::kFloat)}) {
      const auto lower =
          gram_of(form, "w", GetParam()).matrix.slice(0, 0, n).slice(1, 0, n).t().tril();
      const double tolerance = form.scalar_type() == at::kFloat ? 1e-4 : 1e-11;
      EXPECT_LT(largest_difference(lower, exact), tolerance) << m << "x" << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Widths, testing::ValuesIn(widths()), testing::PrintToStringParamName());

TEST(Tridiagonal, CouplingsMayVanish) {
  const std::int64_t n = 60;
  const auto numbers = noise(2, n);
  Tridiagonal t;
  t.n = n;
  for (std::int64_t i = 0; i < n; ++i) {
    t.diagonal.push_back(numbers[0][i].item<double>());
    if (i + 1 < n) {
      t.off.push_back(i % 7 == 0 ? 0 : numbers[1][i].item<double>());
    }
  }
  const auto expected = at::linalg_eigvalsh(tridiagonal_of(t.diagonal, t.off)).flip(0);
  EXPECT_LT(largest_difference(vector_of(eigenvalues(t)), expected), 1e-13);
}

TEST(Tridiagonal, KeepsTheSpectrumOfZero) {
  const auto zero = noise(12, 12).zero_();
  const auto t = tridiagonalize(buffer_of(zero), 12);
  EXPECT_EQ(eigenvalues(t), std::vector<double>(12, 0.0));
  EXPECT_LT(distance_from_orthonormal(eigenvectors(t, eigenvalues(t), 12)), 1e-12);
}

}  // namespace
}  // namespace abtrain::linalg
