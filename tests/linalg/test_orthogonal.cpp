#include "linalg/orthogonal.h"

#include <ATen/ops/linalg_qr.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "base/error.h"
#include "linalg/matrices.h"

namespace abtrain::linalg {
namespace {

at::Tensor oracle(const at::Tensor& w) {
  const auto [q, r] = at::linalg_qr(w);
  return q.mul(r.diagonal().sign());
}

TEST(Orthogonal, IsTheQOfAPositiveR) {
  for (const auto& [m, n] :
       {MatrixShape{1, 1}, MatrixShape{7, 1}, MatrixShape{40, 40}, MatrixShape{90, 33},
        MatrixShape{300, 128}}) {
    const auto w = noise(m, n);
    const auto q = orthogonal_basis(w);
    EXPECT_LT(distance_from_orthonormal(q), 1e-13) << m << "x" << n;
    EXPECT_LT(largest_difference(q, oracle(w)), 1e-12) << m << "x" << n;
    EXPECT_GE(at::mm(q.t(), w).diagonal().min().item<double>(), 0) << m << "x" << n;
    const auto wide = orthogonal_basis(w.t());
    EXPECT_EQ(wide.sizes(), w.t().sizes());
    EXPECT_TRUE(wide.is_contiguous());
    if (m > n) {
      EXPECT_LT(largest_difference(wide.t(), q), 1e-13);
    }
  }
}

TEST(Orthogonal, SinglePrecisionKeepsItsDigits) {
  for (const std::int64_t m : {100, 130, 149, 150, 300, 1000}) {
    const auto w = noise(m, 100).to(at::kFloat);
    const auto q = orthogonal_basis(w);
    EXPECT_EQ(q.scalar_type(), at::kFloat);
    EXPECT_LT(distance_from_orthonormal(q.to(at::kDouble)), 3e-6) << m;
  }
}

TEST(Orthogonal, WorksWithoutFullRank) {
  auto w = with_spectrum(40, {3, 1, 1e-7, 0, 0});
  EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w)), 1e-13);
  EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w.zero_())), 1e-13);
}

// Tall, where Cholesky's R would lose all digits.
TEST(Orthogonal, IllConditionedIsStillOrthonormal) {
  for (const double smallest : {1e-2, 1e-4, 1e-9}) {
    const auto w = noise(90, 5);
    w.select(1, 4).mul_(smallest).add_(w.select(1, 0));
    EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w)), 1e-13) << smallest;
    EXPECT_LT(distance_from_orthonormal(orthogonal_basis(w.to(at::kFloat)).to(at::kDouble)), 2e-6)
        << smallest;
  }
}

// Moments of an entry q of a uniform m x n matrix: E q = 0, E q^2 = 1 / m, E q^4 = 3 / (m (m + 2)),
// and q_11 q_22 and q_12 q_21 have the mean product -1 / ((m - 1) m (m + 2)).
TEST(Orthogonal, IsUniform) {
  for (const std::int64_t m : {3, 6}) {
    constexpr std::int64_t kDraws = 20000;
    double mean = 0, second = 0, fourth = 0, mixed = 0;
    const at::Tensor all = noise(kDraws * m, 3).view({kDraws, m, 3});
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const at::Tensor q = orthogonal_basis(all[i]);
      const auto at = q.accessor<double, 2>();
      mean += at[0][0];
      second += at[1][2] * at[1][2];
      fourth += std::pow(at[2][1], 4);
      mixed += at[0][0] * at[1][1] * at[0][1] * at[1][0];
    }
    const auto d = static_cast<double>(m);
    EXPECT_NEAR(mean / kDraws, 0, 0.02);
    EXPECT_NEAR(second / kDraws, 1 / d, 0.01);
    EXPECT_NEAR(fourth / kDraws, 3 / (d * (d + 2)), 0.01);
    EXPECT_NEAR(mixed / kDraws, -1 / ((d - 1) * d * (d + 2)), 0.003);
  }
}

TEST(Orthogonal, NotFiniteIsAnError) {
  auto w = noise(5, 4);
  w[1][1] = NAN;
  EXPECT_THROW(orthogonal_basis(w), Error);
}

}  // namespace
}  // namespace abtrain::linalg
